// Half-lives that are known are found, whatever part of the steps is observed; the estimators that
// look right and are not, are not right on the same agents.
// How often intervals hold the truth over hundreds of replications: memdecay-bench calibration.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/lives_trial.h"

namespace memdecay::testing {
namespace {

LivesOptions agents(uint32_t every) {
  LivesOptions options;
  options.seed = 1000;
  options.half_lives = true_half_lives();
  options.every = every;
  return options;
}

class Lives : public ::testing::TestWithParam<uint32_t> {};

TEST_P(Lives, AreFoundWithin25PercentInOrderAndInsideTheirInterval) {
  const Score score = score_trials(agents(GetParam()), 4, 400);
  ASSERT_EQ(score.regions.size(), 6u);
  for (size_t i = 0; i < score.regions.size(); ++i) {
    const RegionScore& one = score.regions[i];
    SCOPED_TRACE(one.truth);
    if (std::isinf(one.truth)) {
      EXPECT_GE(one.typical, 1000);
    } else {
      EXPECT_NEAR(one.typical, one.truth, 0.25 * one.truth);
    }
    if (i == 0) continue;
    EXPECT_LT(one.typical, score.regions[i - 1].typical);
  }
  EXPECT_GE(score.covered, 0.8);  // of 24; .95 of many
}

TEST_P(Lives, TheAccessRateAndTheMeanOfCompletedLivesAreWrong) {
  const Score score = score_trials(agents(GetParam()), 1, 100);
  const RegionScore& system = score.regions.front();
  const RegionScore& plan = score.regions[1];
  // A page that never dies reads as one that dies soon: its rate of use was measured.
  EXPECT_LT(system.access_rate, 1000);
  EXPECT_LT(system.naive_mean, 200);
  EXPECT_LT(plan.naive_mean, 0.5 * plan.truth);
}

INSTANTIATE_TEST_SUITE_P(OneStepIn, Lives, ::testing::Values(1, 16));

TEST(Lives, ObservingFewerStepsMultipliesTheAccessRateButNotTheHalfLife) {
  const Trial all = run_trial(agents(1), 100);
  const Trial few = run_trial(agents(16), 100);
  const RegionId user = region_id(Region::kUser);
  EXPECT_GT(few.access_rate.at(user), 8 * all.access_rate.at(user));
  EXPECT_NEAR(few.result.regions[user].half_life, all.result.regions[user].half_life, 20);
}

}  // namespace
}  // namespace memdecay::testing
