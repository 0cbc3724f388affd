// memdecay-engine: a language model that decodes on pages which memdecayd owns.
//
// Exit codes: 0 done, 1 something failed (the error says what to do), 2 bad command line.
// Not here: options (engine_options.h), the run itself (engine.h).
#include <iostream>
#include <memory>
#include <utility>

#include "adapters/reference/commands.h"
#include "adapters/reference/engine.h"
#include "adapters/reference/engine_options.h"
#include "proto/contract/error.h"

namespace memdecay::reference {
namespace {

absl::Status run(const EngineOptions& options) {
  const Echo echo = options.prompt.empty() ? Echo::kStandardOutput : Echo::kNone;
  absl::StatusOr<Journal> journal = Journal::open(options.logits, options.raw_logits, echo);
  if (!journal.ok()) return journal.status();
  absl::StatusOr<std::unique_ptr<Engine>> engine = Engine::start(options, *std::move(journal));
  if (!engine.ok()) return engine.status();
  absl::Status status;
  if (options.commands) {
    status = run_commands(**engine, std::cin);
  } else {
    status = options.prompt.empty() ? (*engine)->run_episode() : (*engine)->run_prompt();
  }
  if (!status.ok()) {
    (*engine)->journal().write(error_event(status));
    return status;
  }
  Event event = {{"event", "done"}};
  (*engine)->add_counters(event);
  (*engine)->journal().write(event);
  return status;
}

int report(const absl::Status& status) {
  if (status.ok()) return 0;
  const ErrorDetail detail = error_detail(status);
  std::cerr << "memdecay-engine: " << error_name(detail.code) << ": "
            << (detail.asked.empty() ? std::string(status.message()) : detail.asked);
  if (!detail.there.empty()) std::cerr << "; " << detail.there;
  if (!detail.todo.empty()) std::cerr << "\n  what to do: " << detail.todo;
  std::cerr << "\n";
  return 1;
}

}  // namespace
}  // namespace memdecay::reference

int main(int argc, char** argv) {
  using memdecay::reference::ParsedOptions;
  const ParsedOptions parsed = memdecay::reference::parse_engine_options(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  return memdecay::reference::report(memdecay::reference::run(*parsed.options));
}
