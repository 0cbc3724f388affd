// memdecay-eval: records a real model's attention, replays it through a real daemon, and asks the
// model what it still knows.
//
// Exit codes: 0 done, 1 something failed (the error says what to do), 2 bad command line.
// Not here: the subcommands (commands.h); scenarios (generate.py); tables (README.md).
#include <CLI/CLI.hpp>
#include <iostream>

#include "proto/contract/error.h"
#include "tests/eval/commands.h"

int main(int argc, char** argv) {
  CLI::App app("memdecay-eval: what forgetting does to a real model; see tests/eval/README.md");
  app.require_subcommand(1);
  absl::Status outcome;
  memdecay::eval::add_record_command(app, outcome);
  memdecay::eval::add_replay_command(app, outcome);
  memdecay::eval::add_running_command(app, outcome);
  memdecay::eval::add_validate_command(app, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (outcome.ok()) return 0;
  const memdecay::ErrorDetail detail = memdecay::error_detail(outcome);
  std::cerr << "memdecay-eval: " << memdecay::error_name(detail.code) << ": "
            << (detail.asked.empty() ? std::string(outcome.message()) : detail.asked);
  if (!detail.there.empty()) std::cerr << "; " << detail.there;
  if (!detail.todo.empty()) std::cerr << "\n  what to do: " << detail.todo;
  std::cerr << "\n";
  return 1;
}
