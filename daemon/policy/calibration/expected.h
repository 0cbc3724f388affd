// Expected lift by token distance, for each region and for all together: what memdecay_n divides by
// (policy.expected_lift). A page's lift at an observation counts with its tokens and with the
// observation's queries, at most kHeaviest of them, as it does there; prompts and generated tokens
// alike.
//
// Thread: the owner's. Pure. Memory: a fixed table.
// Not here: the profile that the fit of half-lives takes out (fit.h), which is one for all regions.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/policy/calibration/tally.h"
#include "daemon/policy/calibration/watch.h"
#include "daemon/policy/options.h"

namespace memdecay::calibration {

class ExpectedLift {
 public:
  static constexpr uint32_t kHeaviest = 32;

  struct Bin {
    double weight = 0;   // tokens times queries
    double lift = 0;     // sum of the lifts, so weighted
    uint64_t views = 0;  // pages times observations

    double mean() const { return weight > 0 ? lift / weight : 0; }
  };
  using Bins = std::array<Bin, policy::kDistanceBins>;

  void add(const Seen& seen);

  const Bins& all() const { return all_; }
  const Bins& of(size_t region) const { return regions_[region]; }

  // As a policy takes it. Bins without observations repeat their nearest neighbour's number; a
  // region's bins lean on those of all regions with the weight of kLeaning pages' observations.
  policy::DistanceTable table() const;
  policy::DistanceTable table(size_t region) const;
  static constexpr double kLeaning = 100;

 private:
  std::array<Bins, kRegions> regions_{};
  Bins all_{};
};

}  // namespace memdecay::calibration
