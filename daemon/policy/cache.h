// What a Policy keeps of its last scan (policy.cc, lowest_of.cc).
// Invariant while valid: every page that could be a victim and goes before `bound` is in `victims`.
// Thread: the owning Policy's.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "daemon/policy/policy.h"

namespace memdecay::policy {

// Kept at least, however few are asked for.
inline constexpr size_t kCachedVictims = 64;

struct Policy::Cache {
  bool valid = false;
  Activity activity = Activity::kActive;
  std::vector<Victim> victims;  // ascending, eligible or not
  std::optional<Victim> bound;

  // Holds every page that could be a victim.
  bool complete() const { return !bound.has_value(); }
};

}  // namespace memdecay::policy
