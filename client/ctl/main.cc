// memdecayctl: the operator's program. Flags, help and nothing else; commands.cc does the work.
// Thread: one. Exit codes: 0 good, 1 refused or a difference found, 2 wrong usage.
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "client/ctl/calibrate/command.h"
#include "client/ctl/commands.h"
#include "client/ctl/record/command.h"
#include "client/ctl/replay/command.h"

namespace memdecay::ctl {
namespace {

struct Flags {
  std::string directory;
  uint32_t timeout_ms = 5000;
  bool json = false;
  std::string session;
  std::string pages;
  std::string target;
  std::string ttl;
  std::string tier = "all";
  std::string model;
  std::string dtype = "f16";
  uint32_t page_tokens = 16;
  uint32_t every_ms = 1000;
  uint32_t last = 20;
  RecordFlags record;
  ReplayFlags replay;
  bool csv = false;
  CalibrateFlags calibrate;
  bool accept_evictions = false;
};

Options options_of(const Flags& flags) {
  Options options;
  options.directory = flags.directory;
  options.timeout = Duration::from_milliseconds(flags.timeout_ms);
  options.format = flags.json ? Format::kJson : Format::kText;
  const char* no_colour = ::getenv("NO_COLOR");
  const bool plain = no_colour != nullptr && *no_colour != '\0';
  if (::isatty(STDOUT_FILENO) == 1) {
    options.colour = plain ? Colour::kNo : Colour::kYes;
    winsize window{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) {
      options.columns = window.ws_col;
    }
  }
  return options;
}

using Run = std::function<int(const Options&)>;

class Commands {
 public:
  Commands(CLI::App& app, Flags& flags) : app_(app), flags_(flags) {}

  CLI::App* add(const char* name, const char* what, const char* example, Run run) {
    CLI::App* command = app_.add_subcommand(name, what);
    command->footer(std::string("Example:\n  ") + example);
    command->fallthrough();
    command->callback([this, run = std::move(run)] { chosen_ = run; });
    return command;
  }
  CLI::App* with_pages(CLI::App* command) {
    command->add_option("SESSION", flags_.session, "id or name")->required();
    command->add_option("PAGES", flags_.pages, "3, 0..7 (inclusive) or 1,4..6")->required();
    return command;
  }
  int run() const { return chosen_(options_of(flags_)); }

 private:
  CLI::App& app_;
  Flags& flags_;
  Run chosen_;
};

void add_questions(Commands& commands, Flags& f) {
  commands.add("status", "What the daemon holds and does.", "memdecayctl status --json",
               run_status);
  commands.add("sessions", "All sessions, a line each.", "memdecayctl sessions", run_sessions);
  commands
      .add("pages", "A session's pages as a map: colour = region, shade = score, mark = place.",
           "memdecayctl pages agent-7", [&f](const Options& o) { return run_pages(o, f.session); })
      ->add_option("SESSION", f.session, "id or name")
      ->required();
  commands
      .add("explain", "Why a page left or stays: each term, the pressure, what would save it.",
           "memdecayctl explain agent-7:12",
           [&f](const Options& o) { return run_explain(o, f.target); })
      ->add_option("TARGET", f.target, "a decision's number, or SESSION:PAGE")
      ->required();
  CLI::App* decisions =
      commands.add("decisions", "The last decisions: what left, came back or was dropped, and why.",
                   "memdecayctl decisions --last 50",
                   [&f](const Options& o) { return run_decisions(o, f.last, f.session); });
  decisions->add_option("--last", f.last, "how many")->check(CLI::Range(1u, 4096u));
  decisions->add_option("--session", f.session, "id or name; without it: of all");
  commands.add("doctor",
               "Advice from what decisions have come to: regret, thrash, pins, look-ups, late\n"
               "answers. Exit 0 healthy, 1 advice (deploy/TROUBLESHOOTING.md has the symptoms).",
               "memdecayctl doctor", run_doctor);
  commands.add("check", "Recomputes every counter from the page states; exit 1 on a difference.",
               "memdecayctl check && echo clean", run_check);
  commands.add("config", "The configuration in effect, as YAML.", "memdecayctl config", run_config);
  CLI::App* top = commands.add(
      "top", "Status and sessions, again and again.", "memdecayctl top",
      [&f](const Options& o) { return run_top(o, Duration::from_milliseconds(f.every_ms)); });
  top->add_option("--every-ms", f.every_ms, "between two looks")->check(CLI::Range(50u, 3600000u));
}

void add_levers(Commands& commands, Flags& f) {
  CLI::App* pin = commands.with_pages(
      commands.add("pin", "Keeps pages on the device.", "memdecayctl pin agent-7 0..3 --ttl 5m",
                   [&f](const Options& o) { return run_pin(o, f.session, f.pages, f.ttl); }));
  pin->add_option("--ttl", f.ttl, "30s, 5m; without it: until the session ends");
  commands.with_pages(
      commands.add("unpin", "Lets pinned pages go.", "memdecayctl unpin agent-7 0..3",
                   [&f](const Options& o) { return run_unpin(o, f.session, f.pages); }));
  commands.with_pages(
      commands.add("evict", "Asks the engine to give pages up.", "memdecayctl evict agent-7 4..9",
                   [&f](const Options& o) { return run_evict(o, f.session, f.pages); }));
  commands.with_pages(
      commands.add("restore", "Brings pages back to the device.", "memdecayctl restore agent-7 4",
                   [&f](const Options& o) { return run_restore(o, f.session, f.pages); }));
  CLI::App* drop =
      commands.add("drop", "Drops stored copies: of pages, or all that nobody references.",
                   "memdecayctl drop --tier host",
                   [&f](const Options& o) { return run_drop(o, f.session, f.pages, f.tier); });
  drop->add_option("SESSION", f.session, "id or name; without it: what nobody references");
  drop->add_option("PAGES", f.pages, "3, 0..7 (inclusive) or 1,4..6");
  drop->add_option("--tier", f.tier, "device, host, disk, remote or all")->capture_default_str();
  CLI::App* size =
      commands.add("size", "Bytes of KV cache that a model needs (asks no daemon).",
                   "memdecayctl size --model model.gguf --page-tokens 16",
                   [&f](const Options& o) { return run_size(o, f.model, f.page_tokens, f.dtype); });
  size->add_option("--model", f.model, "a GGUF file")->required();
  size->add_option("--page-tokens", f.page_tokens, "tokens of a page")->capture_default_str();
  size->add_option("--dtype", f.dtype, "element of the cache")->capture_default_str();
}

int replay_as_asked(const Options& options, const Flags& flags) {
  ReplayFlags replay = flags.replay;
  replay.print = flags.csv                         ? ReplayFlags::Print::kCsv
                 : options.format == Format::kJson ? ReplayFlags::Print::kJson
                                                   : ReplayFlags::Print::kText;
  return run_replay(replay);
}

void add_record(Commands& commands, Flags& f) {
  CLI::App* record =
      commands.add("record",
                   "What the daemon sees of its sessions, as a trace for replay and calibrate: no "
                   "text, no token\n"
                   "ids (proto/TRACE.md). Ends by its limits or Ctrl-C, always with a whole line.",
                   "memdecayctl record --for 5m -o monday.jsonl.gz",
                   [&f](const Options& o) { return run_record(o, f.record); });
  record->add_option("--for", f.record.longest, "30s, 5m")->capture_default_str();
  record->add_option("--max-bytes", f.record.most_bytes, "of lines, before gzip; 64M, 2G")
      ->capture_default_str();
  record->add_option("-o", f.record.file, "a new file, .gz packs it; -: standard output")
      ->capture_default_str();
  record->add_option("--sessions", f.record.sessions, "names; without it: all")->delimiter(',');
}

void add_replay(Commands& commands, Flags& f) {
  CLI::App* replay =
      commands.add("replay",
                   "Hit ratios of retention policies on a trace of requests (asks no daemon). "
                   "Reads what record\n"
                   "writes, Mooncake's and Bailian's JSONL, plain or gzip, in bounded memory; min "
                   "alone keeps 4\n"
                   "bytes a block reference, because it needs the future. decay is run once a salt "
                   "and its mean\n"
                   "is printed.",
                   "memdecayctl replay trace.jsonl.gz --policy decay,lru,arc,s3_fifo,min "
                   "--capacity 1000,10000 --svg ratios.svg",
                   [&f](const Options& o) { return replay_as_asked(o, f); });
  replay->add_option("FILE", f.replay.file, "a trace, one JSON object a line")->required();
  replay->add_option("--policy", f.replay.policies, "of decay, lru, arc, s3_fifo, min")
      ->delimiter(',')
      ->required();
  replay->add_option("--capacity", f.replay.capacities, "blocks that the tier holds")
      ->delimiter(',')
      ->required();
  replay->add_option("--salts", f.replay.salts, "runs of decay, each with another sample")
      ->capture_default_str();
  replay->add_flag("--csv", f.csv, "a line a row, with a header")
      ->excludes(replay->get_parent()->get_option("--json"));
  replay->add_option("--svg", f.replay.svg, "also write a picture to this file");
}

int calibrate_as_asked(const Options& options, const Flags& flags) {
  CalibrateFlags calibrate = flags.calibrate;
  if (options.format == Format::kJson) calibrate.print = CalibrateFlags::Print::kJson;
  if (flags.accept_evictions) calibrate.plan.evictions = CalibrationPlan::Evictions::kAccept;
  return run_calibrate(calibrate);
}

void add_calibrate(Commands& commands, Flags& f) {
  CLI::App* calibrate = commands.add(
      "calibrate",
      "Half-lives and expected lift from recorded traces (asks no daemon): how attention falls\n"
      "with age and with token distance, for each region, with intervals. Record with whole "
      "caches:\n"
      "evictions bias the figures. A region keeps its default below 20 sessions.",
      "memdecayctl calibrate traces/*.gz --out policy.yaml --svg lift.svg",
      [&f](const Options& o) { return calibrate_as_asked(o, f); });
  CalibrationPlan& plan = f.calibrate.plan;
  calibrate->add_option("TRACE", plan.files, "files of memdecayctl record, plain or gzip")
      ->required();
  calibrate->add_option("--out", f.calibrate.out, "write a configuration for memdecayd");
  calibrate->add_option("--svg", f.calibrate.svg, "also write a picture to this file");
  calibrate->add_option("--regions", plan.regions, "only these, by name; default: all")
      ->delimiter(',');
  calibrate
      ->add_option(
          "--channels", plan.channels,
          "layers and heads (\"c\" of the trace) to look at, their mean; default: what the "
          "daemon was sent, else what was observed most often")
      ->delimiter(',');
  calibrate->add_option("--bootstrap", plan.draws, "draws of the bootstrap")
      ->check(CLI::Range(calibration::kLeastDraws, 1000000u))
      ->capture_default_str();
  calibrate->add_flag("--accept-evictions", f.accept_evictions,
                      "calibrate although many pages had been evicted");
}

}  // namespace
}  // namespace memdecay::ctl

int main(int argc, char** argv) {
  CLI::App app("memdecayctl: asks and steers memdecayd.", "memdecayctl");
  app.footer("Example:\n  memdecayctl pages agent-7\nEvery command has --help and --json.");
  app.require_subcommand(1);
  memdecay::ctl::Flags flags;
  app.add_option("--socket", flags.directory,
                 "folder of the daemon's sockets; default $XDG_RUNTIME_DIR/memdecay or "
                 "/run/memdecay");
  app.add_option("--timeout-ms", flags.timeout_ms, "how long to wait for an answer")
      ->capture_default_str();
  app.add_flag("--json", flags.json, "one line of JSON");
  memdecay::ctl::Commands commands(app, flags);
  memdecay::ctl::add_questions(commands, flags);
  memdecay::ctl::add_levers(commands, flags);
  memdecay::ctl::add_record(commands, flags);
  memdecay::ctl::add_replay(commands, flags);
  memdecay::ctl::add_calibrate(commands, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return commands.run();
}
