// The runner: a script from its first statement to its last, in one world. Blocks, loops, seeds,
// branches, judging each outcome against `!code` and `-> …`, audits, and the report of a failure.
// Thread: the caller's; branches of `parallel` have their own and take turns.
// Not here: what statements do (verbs_*.cc), files and skips (main.cc, skips.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tests/scenario/statements.h"
#include "tests/scenario/syntax.h"
#include "tests/scenario/world.h"

namespace memdecay::scenario {

struct RunOptions {
  WorldKind world = WorldKind::kSim;
  uint64_t seed = 1;
  World::Tracer trace;  // also gets the statements
  std::function<std::unique_ptr<World>()> make_world;
};

struct RunResult {
  enum class Kind : uint8_t { kPassed, kFailed, kSkipped };
  Kind kind = Kind::kPassed;
  std::string message;      // why it failed or was skipped
  uint64_t event_hash = 0;  // 0: the world has none
  uint64_t statements = 0;  // that ran
};

RunResult run_script(const Script& script, const RunOptions& options);

}  // namespace memdecay::scenario
