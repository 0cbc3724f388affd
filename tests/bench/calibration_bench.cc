// Whether calibration finds half-lives that are known (see sections.h): simulated agents, the
// estimate beside two that look right and are not (tests/support/lives_trial.h).
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/contract/vocabulary.h"
#include "tests/bench/sections.h"
#include "tests/support/lives_trial.h"

namespace memdecay::bench {
namespace {

std::string tokens(double half_life) {
  return std::isinf(half_life) ? "inf" : absl::StrFormat("%.0f", half_life);
}

}  // namespace

std::string calibration_table(const BenchOptions& options, uint32_t replications) {
  testing::LivesOptions lives;
  lives.half_lives = testing::true_half_lives();
  lives.sessions = options.pick(64U, 32U);
  lives.steps = options.pick(1000U, 600U);
  std::string out;
  for (const uint32_t every : {1U, 16U}) {
    lives.every = every;
    const testing::Score score = testing::score_trials(lives, replications, 1000);
    absl::StrAppendFormat(&out,
                          "%d sessions of %d tokens, one step in %d observed, %d replications\n"
                          "%-12s %6s %8s %11s %10s %12s %11s\n",
                          lives.sessions, lives.steps, every, replications, "half-life of", "true",
                          "ours", "within 25 %", "interval", "access rate", "naive mean");
    for (const testing::RegionScore& region : score.regions) {
      absl::StrAppendFormat(&out, "%-12s %6s %8s %9.1f %% %8.1f %% %12.1f %11.1f\n",
                            std::string(region_name(region.region)), tokens(region.truth),
                            tokens(region.typical), region.within * 100, region.covered * 100,
                            region.access_rate, region.naive_mean);
    }
    absl::StrAppendFormat(&out,
                          "in the true order: %.1f %%; the 95 %% interval holds the truth: "
                          "%.1f %% over all regions\n\n",
                          score.in_order * 100, score.covered * 100);
  }
  return out +
         "Half-lives in tokens, medians over the replications. interval: how often the 95 % "
         "interval holds the truth.\n";
}

}  // namespace memdecay::bench
