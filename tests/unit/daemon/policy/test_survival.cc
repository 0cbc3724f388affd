// Resumption of waiting sessions is learnt without the bias of waits that are cut off.
// Thread: one.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "daemon/policy/survival.h"

namespace memdecay::policy {
namespace {

constexpr SessionState kTool = SessionState::kWaitingTool;
constexpr SessionState kUser = SessionState::kWaitingUser;

double resume(const Survival& survival, SessionState state, double idle, double horizon) {
  return std::exp2(survival.log2_resume(state, idle, horizon));
}

TEST(Survival, without_data_the_states_have_their_order) {
  const Survival survival;
  const SessionState order[] = {SessionState::kEnded, SessionState::kOrphaned, kUser, kTool,
                                SessionState::kPreempted};
  for (size_t i = 1; i < std::size(order); ++i) {
    EXPECT_LT(survival.log2_resume(order[i - 1], 10, 60), survival.log2_resume(order[i], 10, 60));
  }
  EXPECT_LE(survival.log2_resume(SessionState::kPreempted, 0, 1e9), 0.0);
  EXPECT_TRUE(std::isfinite(survival.log2_resume(SessionState::kEnded, 1e9, 1e-9)));
}

TEST(Survival, it_finds_the_true_chance_though_most_waits_are_cut_off) {
  // Tools answer after 100 s on average; the observer leaves after 48 s. The mean of the waits that
  // were seen to end would say 22 s.
  std::mt19937_64 chance(7);
  std::exponential_distribution<double> answer(1.0 / 100);
  Survival survival;
  double seen = 0, sum = 0;
  for (int i = 0; i < 4000; ++i) {
    const double wait = answer(chance);
    survival.waited(kTool, 0, std::min(wait, 48.0));
    if (wait >= 48.0) continue;
    survival.resumed(kTool, wait);
    seen += 1;
    sum += wait;
  }
  const double truth = 1 - std::exp(-30.0 / 100);
  EXPECT_NEAR(resume(survival, kTool, 2, 30), truth, 0.1 * truth);
  const double naive = 1 - std::exp(-30.0 / (sum / seen));
  EXPECT_GT(naive, 2 * truth) << "the naive estimate fails on the same waits";
}

TEST(Survival, who_has_waited_long_is_less_likely_back_if_that_is_how_it_is) {
  Survival survival;
  for (int i = 0; i < 200; ++i) {  // half answer in 5 s, the others hardly ever
    survival.waited(kUser, 0, 5);
    survival.resumed(kUser, 5);
    survival.waited(kUser, 0, 20000);
  }
  EXPECT_GT(resume(survival, kUser, 0, 60), 0.3);
  EXPECT_LT(resume(survival, kUser, 1000, 60), 0.02);
}

TEST(Survival, one_long_wait_counted_in_parts_is_the_same) {
  Survival whole;
  Survival parts;
  whole.waited(kTool, 0, 100);
  for (int i = 0; i < 100; ++i) parts.waited(kTool, i, i + 1);
  EXPECT_NEAR(whole.log2_resume(kTool, 3, 60), parts.log2_resume(kTool, 3, 60), 1e-12);
}

TEST(Survival, what_was_learnt_fades) {
  Survival survival;
  for (int i = 0; i < 1000; ++i) {
    survival.waited(kTool, 0, 400);
    survival.resumed(kTool, 400);
  }
  const double before = resume(survival, kTool, 0, 10);
  for (int i = 0; i < 2000; ++i) {
    survival.waited(kTool, 0, 1.5);
    survival.resumed(kTool, 1.5);
  }
  EXPECT_LT(before, 0.1);
  EXPECT_GT(resume(survival, kTool, 0, 10), 0.8);
}

}  // namespace
}  // namespace memdecay::policy
