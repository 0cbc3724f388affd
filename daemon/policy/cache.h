// What a Policy keeps for its questions (policy.cc, lowest_of.cc): the lowest victims of the last
// one, and for every block of pages a bound below which none of its scores is, so that a question
// looks at few blocks. Invariants: while valid, every page that could be a victim and goes before
// `bound` is in `victims`. A block's bound holds until an event names one of its pages (touch).
// Thread: the owning Policy's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "daemon/policy/columns.h"
#include "daemon/policy/policy.h"
#include "daemon/policy/scorer.h"

namespace memdecay::policy {

// Kept at least, however few are asked for.
inline constexpr size_t kCachedVictims = 64;

// Pages of a block: few enough that one low page costs little, many enough that bounds are few.
inline constexpr PageIndex kBlockPages = 64;

// One block's bound, as of a step.
struct Block {
  Outlook outlook{.low = -std::numeric_limits<double>::infinity(),
                  .floor = -std::numeric_limits<double>::infinity()};
  Step step = 0;

  double bound(Step now) const {
    const double steps = static_cast<double>(now - step);
    return std::max(outlook.low - outlook.fall * steps, outlook.floor);
  }
};

struct Policy::Cache {
  bool valid = false;
  Activity activity = Activity::kActive;
  std::vector<Victim> victims;  // ascending, eligible or not
  std::optional<Victim> bound;
  std::vector<Block> blocks;

  // Holds every page that could be a victim.
  bool complete() const { return !bound.has_value(); }
  // The page has changed: nothing is known of its block.
  void touch(PageIndex page) {
    valid = false;
    const size_t block = page / kBlockPages;
    if (block < blocks.size()) blocks[block] = Block{};
  }
  void cover(PageIndex pages) { fit(blocks, (pages + kBlockPages - 1) / kBlockPages); }
};

}  // namespace memdecay::policy
