// memdecay-scenario FILE…: runs scenario files (scenarios.md) and says what passed. Exit 0 only if
// every file passed or was skipped for a listed reason; the last line is
// "N passed, N failed, N skipped".
// Thread: main's.
#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/scenario/golden.h"
#include "tests/scenario/parser.h"
#include "tests/scenario/runner.h"
#include "tests/scenario/skips.h"
#include "tests/scenario/text_file.h"
#include "tests/scenario/worlds.h"

namespace memdecay::scenario {
namespace {

struct Flags {
  std::vector<std::string> files;
  std::string world = "sim";
  uint64_t seed = 1;
  bool trace = false;
  bool list_statements = false;
  std::string golden;
};

struct Totals {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
};

// A skip that nobody listed is a failure: otherwise a file could stop testing unnoticed.
bool skip_is_listed(const std::string& path, WorldKind world) {
  const std::string file = find_skips_file(path);
  if (file.empty()) return false;
  const absl::StatusOr<std::string> text = read_text_file(file);
  if (!text.ok()) return false;
  const absl::StatusOr<std::vector<Skip>> skips = parse_skips(*text);
  return skips.ok() && find_skip(*skips, path, world) != nullptr;
}

void print_result(const std::string& path, const RunResult& result, WorldKind world,
                  Totals& totals) {
  switch (result.kind) {
    case RunResult::Kind::kPassed:
      ++totals.passed;
      if (world == WorldKind::kSim) {
        std::printf("passed  %s  (%" PRIu64 " statements, event hash %016" PRIx64 ")\n",
                    path.c_str(), result.statements, result.event_hash);
      } else {
        std::printf("passed  %s  (%" PRIu64 " statements)\n", path.c_str(), result.statements);
      }
      break;
    case RunResult::Kind::kFailed:
      ++totals.failed;
      std::printf("failed  %s\n%s", path.c_str(), result.message.c_str());
      if (world == WorldKind::kSim) {
        std::printf("  event hash %016" PRIx64 "\n", result.event_hash);
      }
      break;
    case RunResult::Kind::kSkipped:
      ++totals.skipped;
      std::printf("skipped %s: %s\n", path.c_str(), result.message.c_str());
      if (!skip_is_listed(path, world)) {
        ++totals.failed;
        std::printf("failed  %s: skipped, but not listed in SKIPS\n", path.c_str());
      }
      break;
  }
  std::fflush(stdout);
}

RunResult run_file(const std::string& path, const Flags& flags, WorldKind world) {
  const absl::StatusOr<std::string> text = read_text_file(path);
  if (!text.ok()) {
    return {.kind = RunResult::Kind::kFailed,
            .message = absl::StrCat("  ", text.status().message(), "\n")};
  }
  const absl::StatusOr<Script> script = parse_script(path, *text);
  if (!script.ok()) {
    return {.kind = RunResult::Kind::kFailed,
            .message = absl::StrCat("  ", script.status().message(), "\n")};
  }
  World::Tracer tracer;
  if (flags.trace) tracer = [](const std::string& line) { std::printf("  | %s\n", line.c_str()); };
  RunOptions options{.world = world, .seed = flags.seed, .trace = tracer};
  options.make_world = [&] { return make_world(world, tracer); };
  return run_script(*script, options);
}

int run(const Flags& flags) {
  if (flags.list_statements) {
    std::printf("%s", list_statements().c_str());
    return 0;
  }
  if (!flags.golden.empty()) {
    const int failed = run_golden_folder(flags.golden);
    if (flags.files.empty()) return failed == 0 ? 0 : 1;
    if (failed != 0) return 1;
  }
  const WorldKind world = flags.world == "real" ? WorldKind::kReal : WorldKind::kSim;
  Totals totals;
  for (const std::string& path : flags.files) {
    print_result(path, run_file(path, flags, world), world, totals);
  }
  std::printf("%d passed, %d failed, %d skipped\n", totals.passed, totals.failed, totals.skipped);
  return totals.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace memdecay::scenario

int main(int argc, char** argv) {
  memdecay::scenario::Flags flags;
  CLI::App app("Runs scenario files: text files that state a rule of memdecayd.");
  app.add_option("FILE", flags.files, "scenario files (.scn)");
  app.add_option("--world", flags.world, "sim (one thread, injected clock) or real (processes)")
      ->check(CLI::IsMember({"sim", "real"}));
  app.add_option("--seed", flags.seed, "seed of everything that is left to chance; default 1");
  app.add_flag("--trace", flags.trace, "print events, effects and statements");
  app.add_flag("--list-statements", flags.list_statements, "print the language");
  app.add_option("--golden", flags.golden, "a folder of golden policy histories");
  CLI11_PARSE(app, argc, argv);
  if (flags.files.empty() && !flags.list_statements && flags.golden.empty()) {
    std::fprintf(stderr, "%s", app.help().c_str());
    return 2;
  }
  return memdecay::scenario::run(flags);
}
