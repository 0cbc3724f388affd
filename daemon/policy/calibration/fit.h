// The fit of half-lives: what a page gets is
//
//     e(distance) x f x (1 + k_r x 2^(-age / h_r))
//
// e: a profile by token distance, one for all regions, since attention falls with distance for
// every token; f: the floor that a page gets that nobody needs any more; k_r: how much more a fresh
// page of region r gets; h_r: its half-life. k_r and h_r are those of the expectation of pages that
// die: 2^(-age/h) is the share that still lives.
//
// An observation's shares sum to 1: what one page loses another one gains. So pages are compared
// only with pages of the same session at about the same time (a block: a group's cells of one time
// bucket), as a conditional logit does: of a block's lift, a cell is expected to have the part
// tokens x e x (1 + k 2^(-age/h)) / the block's sum of those. f cancels; it is told afterwards.
// Rates (1/h) are fitted, which may come out at 0 or below: no decay.
//
// Thread: pure functions. Bounds: kMostSteps Newton steps; dozens of unknowns.
// Not here: intervals and what becomes of it (calibrate.h).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "daemon/policy/calibration/solve.h"
#include "daemon/policy/calibration/tally.h"

namespace memdecay::calibration {

inline constexpr int kMostSteps = 100;

// Which unknown is where: distances that occur, then log k and rate of each region that occurs.
struct Unknowns {
  std::vector<size_t> distances;  // buckets
  std::vector<size_t> regions;
  std::array<size_t, kBuckets> of_distance{};  // index of log e
  std::array<size_t, kRegions> of_region{};    // index of log k; the rate is the next one
  size_t size() const { return distances.size() + 2 * regions.size(); }
};
Unknowns unknowns_of(absl::Span<const Group> groups);

// log e by distance, log k and rate by region, as Unknowns says.
using Values = std::vector<double>;

// What one group says at these values: the slope of its likelihood and the curvature.
struct Slope {
  double likelihood = 0;
  std::vector<double> gradient;
  Symmetric curvature;

  void add(const Slope& other);
  // Newton's, with the unknowns `held` where they are.
  std::vector<double> step(absl::Span<const size_t> held, double damping) const;
};
Slope slope_of(const Group& group, const Unknowns& unknowns, const Values& values);

struct Fitted {
  Unknowns unknowns;
  Values values;
  double least_rate = 0;     // the bound below
  std::vector<size_t> held;  // unknowns that the data push against their bounds
  int steps = 0;
  enum class End : uint8_t { kConverged, kStepsUsedUp } end = End::kStepsUsedUp;

  double profile(size_t distance) const;  // e, of a bucket that occurs; its mean logarithm is 0
  double weight(const Cell& cell) const;  // tokens x e x (1 + k 2^(-age/h))
  // False: the region's rate is at a bound, or its fresh pages get no more than dead ones.
  bool inside(size_t region) const;
  double rate(size_t region) const { return values[unknowns.of_region[region] + 1]; }
  double log_k(size_t region) const { return values[unknowns.of_region[region]]; }
};
Fitted fit(absl::Span<const Group> groups);

}  // namespace memdecay::calibration
