// The subcommands of memdecay-eval: each adds itself to the command line and runs when chosen.
//
// Why: recording, replaying and validating share the program and little else.
// Thread: one.
// Invariant: exactly one of them runs; what it returns is the program's outcome.
// Not here: what they do (one file each, named like its subcommand).
#pragma once

#include <CLI/CLI.hpp>

#include "absl/status/status.h"

namespace memdecay::eval {

// `outcome` lives as long as `app` and is set by the subcommand that runs.
void add_record_command(CLI::App& app, absl::Status& outcome);
void add_replay_command(CLI::App& app, absl::Status& outcome);
void add_running_command(CLI::App& app, absl::Status& outcome);
void add_validate_command(CLI::App& app, absl::Status& outcome);

}  // namespace memdecay::eval
