// The command language of `memdecay-engine --commands`: one a line, each answered by JSON lines.
//
// Why: the quickstart and the kill tests drive engines step by step; a person can do it by hand.
// Thread: one.
// Invariants: every command ends with one event, "error" included; an error leaves the session as
// it is and the next command is read.
// Not here: what commands do (engine.h).
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/reference/engine.h"

namespace memdecay::reference {

// "3,7..20" → 3, 7, 8, …, 20. invalid_argument says what is wrong.
absl::StatusOr<std::vector<PageIndex>> parse_pages(const std::string& text);

// Reads commands until quit or the end of input.
absl::Status run_commands(Engine& engine, std::istream& input);

Event error_event(const absl::Status& status);

}  // namespace memdecay::reference
