// How well a calibration finds half-lives that are known: simulated agents (lives.h), the product's
// estimate, and two estimators that look right and are not, side by side.
//
//   access rate  ln 2 / (accesses / exposure): reads how often a page is used while it lives
//   naive mean   ln 2 x mean length of completed lives, a life being complete when kQuiet steps
//                went by without an access: reads the gaps between bouts, and short lives first
// Thread: one. Not here: the checks (test_lives.cc), the table (calibration_bench.cc).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/policy/calibration/calibrate.h"
#include "tests/support/lives.h"

namespace memdecay::testing {

inline constexpr uint64_t kQuiet = 48;

struct Trial {
  calibration::Result result;
  std::map<RegionId, double> access_rate;
  std::map<RegionId, double> naive_mean;
};
Trial run_trial(const LivesOptions& options, uint32_t draws);

struct RegionScore {
  RegionId region = 0;
  double truth = 0;
  double typical = 0;  // median of what was written: ours, shrunk
  double within = 0;   // share of the trials that are within 25 %; infinity: reads 1,000 or more
  double covered = 0;  // share of the trials whose interval holds the truth
  double access_rate = 0;  // medians
  double naive_mean = 0;
};
struct Score {
  std::vector<RegionScore> regions;  // by true half-life, the longest first
  double in_order = 0;               // share of the trials that order the regions as they are
  double covered = 0;                // over all regions and trials
};
// `replications` trials, each with a seed of its own.
Score score_trials(LivesOptions options, uint32_t replications, uint32_t draws);

}  // namespace memdecay::testing
