// Runs a golden policy history (policy.md section 10) against the product's policies: one JSON
// object with `policy`, `b`, `half_life`, `pinned` and `events`. Used by the unit tests and by
// `memdecay-scenario --golden`.
// Thread: pure functions. Errors: invalid_argument for what is no such history.
// Not here: reading files; the histories themselves (tests/golden/policy).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace memdecay::test {

struct GoldenResult {
  std::string policy;
  size_t events = 0;
  size_t decisions = 0;  // `evict` and `order` events compared
  size_t victims = 0;
  double worst_relative_error = 0.0;     // of a score
  std::vector<std::string> differences;  // empty = passed; bounded
};

// Scores must agree to 1e-9 relative, victims in order.
absl::StatusOr<GoldenResult> run_golden_history(std::string_view json);

}  // namespace memdecay::test
