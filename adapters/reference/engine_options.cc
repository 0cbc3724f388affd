// Flags of memdecay-engine by CLI11; see engine_options.h.
#include "adapters/reference/engine_options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "adapters/reference/page_store.h"

namespace memdecay::reference {
namespace {

constexpr const char* kExample = R"(
examples:
  model=$(bash deploy/fetch_model.sh)
  memdecay-engine --model $model --prompt "Name three rivers." --standalone
  memdecay-engine --model $model --episode adapters/reference/episodes/cold_chain.json \
      --socket /run/memdecay --session cold --mode exact --logits run.jsonl
  memdecay-engine --model $model --episode … --mode lossy --budget 25% --lockstep
  memdecay-engine --model $model --episode … --resume cold

commands (with --commands, one a line on standard input; each is answered by JSON lines):
  turn              the episode's next turn: unpark, prefill, generate, park
  replay [TOKENS]   what is left of the episode in one prefill: the prompts and, with --follow,
                    that run's generated tokens
  say TEXT          a user's message and the opening of an answer
  generate N        N tokens, the best one each time
  logits            SHA-256 of the last token's logits, computed again from the pages
  park [tool|user|preempted]      unpark
  evict PAGES       restore PAGES     PAGES: 3,7..20
  repair            recompute what was computed with something missing
  truncate TOKENS   budget PAGES      mode exact|lossy
  pages [hash]      where each page is in this process (hash: with SHA-256 of its bytes)
  hold PHASE N      stand still at the N-th PHASE from now on
  status            counters          forget     quit: the session is not kept after all
  quit
)";

void add_daemon_flags(CLI::App& app, DaemonOptions& daemon, std::string& mode) {
  app.add_option("--socket", daemon.socket_dir, "Folder of memdecayd's sockets")->type_name("DIR");
  app.add_option("--session", daemon.session, "Name of the session; default: the daemon's choice")
      ->type_name("NAME");
  app.add_option("--resume", daemon.resume, "Go on with this session (name or id)")
      ->type_name("SESSION");
  app.add_flag("--steal", daemon.steal, "Resume it although its engine lives");
  app.add_option("--engine-name", daemon.engine_name, "Name in logs and memdecayctl")
      ->type_name("NAME");
  app.add_option("--mode", mode, "exact: same bits as unlimited memory. lossy: bounded memory")
      ->check(CLI::IsMember({"exact", "lossy"}));
  app.add_option("--observe-every", daemon.observe_every,
                 "Report attention of every k-th step, and of every prefill step")
      ->check(CLI::Range(1u, 1u << 20));
  using Queries = DaemonOptions::Queries;
  app.add_option("--observe-queries", daemon.queries,
                 "A report tells of all tokens decoded since the last one, or of its step's own")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Queries>{
          {"since-last", Queries::kSinceLast}, {"own", Queries::kOwn}}));
  app.add_option("--grants-ahead", daemon.grants_ahead, "Pages kept granted ahead of need")
      ->check(CLI::Range(0u, 256u));
  app.add_flag("--lockstep", daemon.lockstep,
               "Wait for the daemon's decisions after each step: runs are repeatable");
  app.add_option("--patience-ms", daemon.patience_ms, "Longest wait for memory")
      ->check(CLI::Range(1, 86'400'000));
}

void add_run_flags(CLI::App& app, EngineOptions& out) {
  app.add_option("--model", out.model, "Llama-family GGUF file (deploy/fetch_model.sh)")
      ->type_name("FILE")
      ->envname("MEMDECAY_MODEL")
      ->required();
  app.add_option("--episode", out.episode, "Conversation with turns and pauses to compute")
      ->type_name("FILE");
  app.add_option("--prompt", out.prompt, "One user message to answer")->type_name("TEXT");
  app.add_flag("--commands", out.commands, "Take commands from standard input");
  app.add_flag("--standalone", out.standalone, "Private, unlimited memory; no daemon");
  app.add_flag("--wait", out.wait_go, "After each pause wait for a line (go) on standard input");
  app.add_flag("!--no-share", out.share, "Compute everything here, whatever others have");
  app.add_option("--budget", out.budget, "Pages this session may have: N, or N% of the episode's")
      ->type_name("N|N%");
  app.add_option("--observe-heads", out.observe_heads,
                 "Whose attention is reported: all, late (last third of the layers), or a list")
      ->type_name("all|late|LAYER:HEAD,...");
  app.add_option("--generate", out.generate, "Tokens to generate after a prompt")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--chunk", out.chunk, "Tokens of one prefill step")->check(CLI::Range(1, 4096));
  app.add_option("--threads", out.threads, "Threads that compute")->check(CLI::Range(1, 64));
  app.add_option("--logits", out.logits, "Events and SHA-256 of logits, one JSON object a line")
      ->type_name("FILE");
  app.add_option("--raw-logits", out.raw_logits, "Every row of logits, float32")->type_name("FILE");
  app.add_option("--follow", out.follow, "Take generated tokens from this run's --logits file")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  app.add_flag("--trace", out.trace, "An event for each token and each phase");
  app.add_option("--hold", out.hold, "Stand still at the N-th PHASE until a line comes (tests)")
      ->type_name("PHASE:N");
}

std::string contradiction(const EngineOptions& options, const std::string& mode) {
  const int ways = !options.episode.empty() + !options.prompt.empty() + options.commands;
  if (ways == 0) return "give --episode FILE, --prompt TEXT or --commands";
  if (!options.episode.empty() && !options.prompt.empty()) {
    return "--episode and --prompt exclude each other";
  }
  if (options.standalone && (!options.daemon.resume.empty() || mode == "lossy" ||
                             !options.budget.empty() || options.daemon.lockstep)) {
    return "--standalone has no daemon: --resume, --mode lossy, --budget and --lockstep need one";
  }
  if (!options.daemon.resume.empty() && !options.daemon.session.empty()) {
    return "--resume goes on with a session, --session names a new one: give one of them";
  }
  if (!options.budget.empty() && options.budget.back() == '%' && options.episode.empty()) {
    return "a budget in percent is of an episode's pages: give --episode, or a number of pages";
  }
  return {};
}

}  // namespace

ParsedOptions parse_engine_options(int argc, const char* const* argv) {
  CLI::App app("memdecay-engine: a small language model decoding on pages of memdecayd");
  app.footer(kExample);
  EngineOptions out;
  std::string mode = "exact";
  add_run_flags(app, out);
  add_daemon_flags(app, out.daemon, mode);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return {std::nullopt, app.exit(error)};
  }
  if (const std::string wrong = contradiction(out, mode); !wrong.empty()) {
    std::cerr << "memdecay-engine: " << wrong << "\n";
    return {std::nullopt, 2};
  }
  out.daemon.lossy = mode == "lossy";
  return {std::move(out), 0};
}

}  // namespace memdecay::reference
