// The table of statements: what exists, how it is written, which options it knows, and what a world
// cannot do. `--list-statements` prints it; the parser refuses what is not in it.
// Thread: constant data.
// Not here: what a statement does (verbs_*.cc, expect_*.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tests/scenario/syntax.h"

namespace memdecay::scenario {

enum class WorldKind : uint8_t { kSim, kReal };

struct StatementKind {
  std::string_view name;
  std::string_view usage;
  std::string_view options = {};    // names with a space between; "*": any
  std::string_view sim_lacks = {};  // why simulation cannot do it; empty: it can
  std::string_view real_lacks = {};
};

absl::Span<const StatementKind> statement_kinds();
const StatementKind* find_statement(std::string_view name);

// invalid_argument: unknown statement, unknown option or unknown expectation.
absl::Status check_statement(const Statement& statement);

// Why `world` cannot run a script with this statement (blocks included), or nothing.
std::optional<std::string> lacking(const Statement& statement, WorldKind world);

std::string list_statements();

}  // namespace memdecay::scenario
