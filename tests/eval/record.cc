// memdecay-eval record: one full-cache pass of a scenario, as a trace.
//
// Why: every policy is judged on the same observations of the real model, recorded once.
// Thread: one; the model's pool helps.
// Not here: scenarios, the trace's lines.
#include "proto/contract/error.h"
#include "tests/eval/commands.h"

namespace memdecay::eval {

void add_record_command(CLI::App& app, absl::Status& outcome) {
  CLI::App* command = app.add_subcommand("record", "one full-cache pass of a scenario, as a trace");
  command->callback([&outcome] {
    outcome = make_error(ErrorCode::kUnsupported, "record", "it is not built yet", "");
  });
}

}  // namespace memdecay::eval
