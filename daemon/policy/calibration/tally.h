// What is kept of lifts: sums by group of sessions, time in the session, region, age and distance.
// All of the fits work on these sums, so memory does not grow with the trace's length: sessions
// fall into at most kGroups groups (one each while there are no more), which are also what the
// bootstrap draws.
//
// Thread: the owner's. Pure. Memory: a cell of 24 bytes for each combination that occurred; a group
// of one session of a thousand steps has about two thousand.
// Not here: where lifts come from (watch.h), what is fitted (fit.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "daemon/policy/calibration/watch.h"
#include "daemon/policy/options.h"

namespace memdecay::calibration {

inline constexpr size_t kGroups = 512;
inline constexpr size_t kCounted = 4096;
inline constexpr size_t kRegions = 64;  // a trace's further regions are not calibrated

// Two buckets for each doubling: [0,1) [1,2) [2,2.8) [2.8,4) [4,5.7) ...
inline constexpr size_t kBuckets = 48;
size_t bucket_of(uint64_t value);
double bucket_middle(size_t bucket);  // of the whole numbers in it
uint64_t bucket_first(size_t bucket);

struct Cell {
  uint8_t time = 0;  // bucket of the session's step
  uint8_t region = 0;
  uint8_t age = 0;
  uint8_t distance = 0;
  double tokens = 0;  // pages' tokens times observations
  double lift = 0;    // sum over those of the lift
};

struct Group {
  std::vector<Cell> cells;  // ordered by time
  uint64_t sessions = 0;
  std::array<uint32_t, kRegions> sessions_with{};  // that had pages of the region
};

// Calls `use` with each run of cells of one time bucket.
template <typename Use>
void for_each_block(const Group& group, Use use) {
  for (size_t first = 0; first < group.cells.size();) {
    size_t next = first;
    while (next < group.cells.size() && group.cells[next].time == group.cells[first].time) ++next;
    use(absl::MakeConstSpan(group.cells).subspan(first, next - first));
    first = next;
  }
}

class Tally {
 public:
  void add(const Seen& seen);
  // The sums so far, by group.
  std::vector<Group> groups() const;
  // Pages times observations that counted.
  uint64_t views(size_t region) const { return views_[region]; }

 private:
  struct Sums {
    double tokens = 0;
    double lift = 0;
  };
  struct Open {
    absl::flat_hash_map<uint32_t, Sums> cells;
    // Bits of the regions that each session has; the first kCounted sessions' of a group.
    absl::flat_hash_map<uint64_t, uint64_t> regions_of;
  };
  std::vector<Open> groups_;
  std::array<uint64_t, kRegions> views_{};
};

}  // namespace memdecay::calibration
