// Decode steps of the reference engine, with private memory and on a daemon's pages (see
// sections.h).
//
// Three engines hold the same prompt of 128 tokens: one standalone, two on a daemon each that are
// asked for attention masses every step and every 16th. In turn each cuts its sequence back to the
// prompt and decodes 64 tokens; only the decoding is timed, from the command to its answer. All
// must give the same logits, bit for bit: otherwise they did not do the same work.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/bench/processes.h"
#include "tests/bench/sections.h"

namespace memdecay::bench {
namespace {

using Json = nlohmann::json;

// Longer than 128 tokens; the rest is cut off.
constexpr const char* kPrompt =
    "A small port town wants to know which of its three piers to repair first. The northern pier "
    "carries the ferry and most of the visitors, but only in summer. The middle pier belongs to "
    "the fishing boats, eleven of them, and its crane has been out of order since the storm in "
    "February. The southern pier is the oldest; nobody lands there any more, yet it keeps the "
    "swell away from the other two. There is money for one pier this year and perhaps for another "
    "one the year after. The harbour master would like a short answer with reasons, the mayor a "
    "plan for both years, and the fishermen would like to be asked before anything is decided. "
    "Write what you would tell each of them, and say what you would want to measure first.";
constexpr size_t kPromptTokens = 128;

class EngineProcess {
 public:
  // `how`: flags that tell where its pages are.
  static absl::StatusOr<std::unique_ptr<EngineProcess>> start(const BenchOptions& options,
                                                              const std::vector<std::string>& how) {
    std::vector<std::string> words = {
        options.programs + "/memdecay-engine", "--model", options.model, "--commands", "--threads",
        std::to_string(options.threads)};
    words.insert(words.end(), how.begin(), how.end());
    std::unique_ptr<EngineProcess> engine(new EngineProcess());
    absl::StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::start(words);
    if (!process.ok()) return process.status();
    engine->process_ = *std::move(process);
    if (const auto ready = engine->next_event(); !ready.ok()) return ready.status();
    const absl::StatusOr<Json> said = engine->ask(absl::StrCat("say ", kPrompt));
    if (!said.ok()) return said.status();
    if (said->value("known_tokens", size_t{0}) <= kPromptTokens) {
      return make_error(ErrorCode::kInvalidArgument, options.model, "its tokens are too long",
                        "give a model with a tokenizer like SmolLM2's");
    }
    return engine;
  }

  // Milliseconds a step of decoding `tokens` tokens after the prompt; errors stay in status().
  double decode(size_t tokens) {
    // The token after the prompt is known and not computed: every step computes one token.
    const absl::StatusOr<Json> cut = ask(absl::StrCat("truncate ", kPromptTokens + 1));
    if (!cut.ok()) return fail(cut.status());
    const Stopwatch watch;
    const absl::StatusOr<Json> done = ask(absl::StrCat("generate ", tokens));
    const double took = watch.nanoseconds() / 1e6;
    if (!done.ok()) return fail(done.status());
    logits_ = done->value("logits_sha256", "");
    return took / static_cast<double>(tokens);
  }

  const std::string& logits() const { return logits_; }
  const absl::Status& status() const { return status_; }

 private:
  EngineProcess() = default;

  double fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
    return 0;
  }

  absl::StatusOr<Json> next_event() {
    const absl::StatusOr<std::string> line = process_->read_line();
    if (!line.ok()) return line.status();
    Json event = Json::parse(*line, nullptr, false);
    if (event.is_discarded() || event.value("event", "error") == "error") {
      return make_error(ErrorCode::kUnavailable, "memdecay-engine", *line, "see its message");
    }
    return event;
  }

  absl::StatusOr<Json> ask(const std::string& command) {
    if (absl::Status status = process_->write_line(command); !status.ok()) return status;
    return next_event();
  }

  std::unique_ptr<ChildProcess> process_;
  std::string logits_;
  absl::Status status_;
};

// An engine and the daemon that owns its pages; standalone: none.
struct Setup {
  std::string name;
  std::unique_ptr<DaemonProcess> daemon;
  std::unique_ptr<EngineProcess> engine;  // goes first
};

absl::StatusOr<Setup> standalone(const BenchOptions& options) {
  Setup setup{.name = "standalone, private memory"};
  auto engine = EngineProcess::start(options, {"--standalone"});
  if (!engine.ok()) return engine.status();
  setup.engine = *std::move(engine);
  return setup;
}

absl::StatusOr<Setup> on_daemon(const BenchOptions& options, const std::string& every) {
  Setup setup{.name = absl::StrCat("on memdecayd, k = ", every)};
  auto daemon = DaemonProcess::start(options.programs, {"device.pages=64", "host.pages=64"});
  if (!daemon.ok()) return daemon.status();
  setup.daemon = *std::move(daemon);
  auto engine = EngineProcess::start(
      options, {"--socket", setup.daemon->folder(), "--observe-every", every, "--no-share"});
  if (!engine.ok()) return engine.status();
  setup.engine = *std::move(engine);
  return setup;
}

absl::Status check(const std::vector<Setup>& setups) {
  for (const Setup& setup : setups) {
    if (!setup.engine->status().ok()) return setup.engine->status();
    if (setup.engine->logits() != setups.front().engine->logits()) {
      return make_error(ErrorCode::kDataLoss, "the same logits everywhere",
                        absl::StrCat(setup.name, " gives others"), "find out why before measuring");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status measure_engine(const BenchOptions& options, Report& report) {
  const size_t tokens = options.pick(size_t{64}, size_t{8});
  report.section(
      absl::StrCat("decode: ", tokens, " steps after ", kPromptTokens, " tokens, ", options.threads,
                   " threads; attention is reported every k steps; ratios of step times"));
  std::vector<Setup> setups;
  for (const char* const every : {"", "1", "16"}) {
    absl::StatusOr<Setup> setup = *every == '\0' ? standalone(options) : on_daemon(options, every);
    if (!setup.ok()) return setup.status();
    setups.push_back(*std::move(setup));
  }
  std::vector<Way> ways;
  for (const Setup& setup : setups) {
    EngineProcess& engine = *setup.engine;
    ways.push_back({setup.name, [&engine, tokens] { return engine.decode(tokens); }});
  }
  const auto figures = take_turns(options.pick(15, 3), ways);
  if (absl::Status status = check(setups); !status.ok()) return status;
  for (size_t way = 0; way < ways.size(); ++way) {
    std::vector<double> speeds;
    for (const double milliseconds : figures[way]) speeds.push_back(1000 / milliseconds);
    Row row{.name = ways[way].name, .figure = spread_of(speeds), .unit = "tokens/s"};
    if (way > 0) {
      row.ratio = quantile(ratios(figures[way], figures[0]), 0.5);
      row.baseline = ways[0].name;
    }
    if (way == 2) row.goal = Goal{Goal::Side::kAtMost, 1.01};
    report.add(std::move(row));
  }
  return absl::OkStatus();
}

}  // namespace memdecay::bench
