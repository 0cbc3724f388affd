// The rules that all policies obey, one test each: what is protected, who has grace, how ties
// break, what a cached answer may not change. Thread: one. Not here: formulas
// (test_random_histories.cc, test_golden.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "daemon/policy/policy.h"

namespace memdecay::policy {
namespace {

// From here all pages are equally far, so that expected lift is 1 for all.
constexpr uint64_t kFarAway = 1000000;
constexpr auto kAnyPage = [](PageIndex) { return true; };

std::unique_ptr<Policy> plain(const std::string& name) {
  return make_policy({.name = name, .sinks = 0, .recent = 0}).value();
}

void seal(Policy& policy, PageIndex first, PageIndex last, Region region = Region::kUser) {
  for (PageIndex page = first; page <= last; ++page) {
    policy.on_seal(page, {{{.region = region_id(region), .tokens = 16}}});
  }
}

void attend(Policy& policy, Step step, std::vector<PageMass> masses) {
  double rest = 1.0;
  for (const PageMass& mass : masses) rest -= mass.mass;
  policy.on_observe(
      {.step = step, .query_position = kFarAway, .queries = 1, .rest = rest, .masses = masses});
}

std::vector<PageIndex> victims(const Policy& policy, size_t count,
                               Activity activity = Activity::kActive) {
  std::vector<PageIndex> pages;
  for (const Victim& victim : policy.lowest(count, activity, kAnyPage)) {
    pages.push_back(victim.page);
  }
  return pages;
}

std::vector<PageIndex> sorted(std::vector<PageIndex> pages) {
  std::sort(pages.begin(), pages.end());
  return pages;
}

// Whether fresh pages of one region are alike to the policy.
bool knows_equals(const std::string& name) {
  return !name.starts_with("lru") && !name.starts_with("random") && !name.starts_with("streaming");
}

std::string test_name(const testing::TestParamInfo<const char*>& form) {
  std::string name = form.param;
  std::replace(name.begin(), name.end(), '+', '_');
  return name;
}

// `truncation` has no sinks: test_baselines.cc.
class EveryPolicy : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Rules, EveryPolicy,
                         testing::Values("h2o+pin", "lru+pin", "memdecay", "memdecay_n",
                                         "memdecay_n0", "norm_sum+pin", "random+pin", "snapkv+pin",
                                         "streaming+pin", "tova+pin"),
                         test_name);

TEST_P(EveryPolicy, sinks_pinned_regions_pins_and_recent_pages_are_spared_while_active) {
  auto policy = make_policy({.name = GetParam(), .sinks = 20, .recent = 2}).value();
  seal(*policy, 0, 2);
  seal(*policy, 3, 3, Region::kSystem);
  seal(*policy, 4, 8);
  policy->on_pin(5);
  EXPECT_EQ(policy->protection(1), Protection::kSink);  // positions 16–19
  EXPECT_EQ(policy->protection(2), Protection::kNone);
  EXPECT_EQ(policy->protection(3), Protection::kRegion);
  EXPECT_EQ(policy->protection(5), Protection::kPin);
  EXPECT_EQ(policy->protection(7), Protection::kRecent);
  EXPECT_EQ(sorted(victims(*policy, 99)), (std::vector<PageIndex>{2, 4, 6}));
  EXPECT_EQ(victims(*policy, 99, Activity::kIdle).size(), 8u) << "only the explicit pin holds";
  policy->on_unpin(5);
  EXPECT_EQ(sorted(victims(*policy, 99)), (std::vector<PageIndex>{2, 4, 5, 6}));
}

TEST_P(EveryPolicy, one_token_of_a_pinned_region_protects_the_page) {
  auto policy = plain(GetParam());
  policy->on_seal(0, {{{.region = region_id(Region::kUser), .tokens = 15},
                       {.region = region_id(Region::kSystem), .tokens = 1}}});
  EXPECT_EQ(policy->protection(0), Protection::kRegion);
  policy->on_retag(0, {{{.region = region_id(Region::kUser), .tokens = 16}}});
  EXPECT_EQ(policy->protection(0), Protection::kNone);
}

TEST_P(EveryPolicy, a_softened_page_loses_protection_and_keeps_its_worth) {
  auto policy = plain(GetParam());
  seal(*policy, 0, 0, Region::kSystem);
  const double before = policy->score(0);
  policy->on_soften(0);
  EXPECT_EQ(policy->protection(0), Protection::kNone);
  EXPECT_EQ(policy->score(0), before);
  policy->on_harden(0);
  EXPECT_EQ(policy->protection(0), Protection::kRegion);
}

TEST_P(EveryPolicy, ties_break_by_oldest_refresh_then_page) {
  auto policy = plain(GetParam());
  if (policy->options().name == "random+pin") return;  // no two draws are equal
  seal(*policy, 0, 3);
  EXPECT_EQ(victims(*policy, 3), (std::vector<PageIndex>{0, 1, 2}));
}

TEST(Ties, of_equal_scores_the_one_refreshed_longest_ago_goes_first) {
  for (const char* name : {"memdecay", "memdecay_n", "memdecay_n0"}) {
    PolicyOptions options{.name = name, .sinks = 0, .recent = 0};
    options.regions = default_regions();
    options.regions[region_id(Region::kUser)].half_life = 1e300;  // never decays
    auto policy = make_policy(options).value();
    seal(*policy, 2, 2);
    policy->on_step(10);
    seal(*policy, 0, 1);
    ASSERT_EQ(policy->score(2), policy->score(0));
    EXPECT_EQ(victims(*policy, 3), (std::vector<PageIndex>{2, 0, 1})) << name;
  }
}

TEST_P(EveryPolicy, pages_not_resident_are_no_victims_and_come_back_with_their_state) {
  auto policy = plain(GetParam());
  seal(*policy, 0, 2);
  attend(*policy, 3, {{.page = 0, .mass = 0.7}});
  policy->on_evicted(1);
  EXPECT_EQ(victims(*policy, 9).size(), 2u);
  const double away = policy->score(1);
  policy->on_restored(1);
  EXPECT_EQ(victims(*policy, 9).size(), 3u);
  const std::string name = GetParam();
  if (name != "lru+pin" && name != "random+pin") {
    EXPECT_EQ(policy->score(1), away);
  }
}

TEST_P(EveryPolicy, a_truncated_page_is_forgotten_and_may_be_sealed_again) {
  auto policy = plain(GetParam());
  seal(*policy, 0, 4);
  policy->on_pin(3);
  policy->on_supersede(3);
  policy->on_truncate(2);
  EXPECT_EQ(sorted(victims(*policy, 9)), (std::vector<PageIndex>{0, 1}));
  EXPECT_FALSE(policy->sealed(3));
  seal(*policy, 2, 3);
  EXPECT_EQ(policy->protection(3), Protection::kNone);
  if (knows_equals(GetParam())) {
    EXPECT_EQ(policy->score(3), policy->score(2));
  }
}

TEST_P(EveryPolicy, the_cached_answer_honours_a_changed_eligibility) {
  auto policy = plain(GetParam());
  seal(*policy, 0, 299);
  EXPECT_EQ(victims(*policy, 3).size(), 3u);
  std::set<PageIndex> leased;
  for (PageIndex page = 0; page < 280; ++page) leased.insert(page);
  const auto free =
      policy->lowest(5, Activity::kActive, [&](PageIndex page) { return leased.count(page) == 0; });
  ASSERT_EQ(free.size(), 5u);
  for (const Victim& victim : free) EXPECT_GE(victim.page, 280u);
  EXPECT_EQ(victims(*policy, 200).size(), 200u) << "more than the cache held";
  EXPECT_EQ(victims(*policy, 999).size(), 300u);
  EXPECT_TRUE(victims(*policy, 0).empty());
}

TEST_P(EveryPolicy, the_cached_answer_is_the_scanned_one_after_every_change) {
  auto policy = plain(GetParam());
  seal(*policy, 0, 40);
  for (Step step = 1; step < 60; ++step) {
    const PageIndex page = static_cast<PageIndex>((step * 7) % 41);
    victims(*policy, 10);  // fills the cache
    attend(*policy, step, {{.page = page, .mass = 0.5}});
    if (policy->resident((page + 1) % 41)) policy->on_evicted((page + 1) % 41);
    if (!policy->resident((page + 3) % 41)) policy->on_restored((page + 3) % 41);
    EXPECT_EQ(victims(*policy, 41), victims(*policy->clone(), 41));
  }
}

TEST_P(EveryPolicy, a_clone_goes_its_own_way) {
  auto policy = plain(GetParam());
  seal(*policy, 0, 3);
  auto fork = policy->clone();
  fork->on_evicted(0);
  fork->on_step(100);
  EXPECT_TRUE(policy->resident(0));
  EXPECT_EQ(policy->now(), 0u);
}

TEST_P(EveryPolicy, the_clock_never_runs_back) {
  auto policy = plain(GetParam());
  policy->on_step(50);
  seal(*policy, 0, 1);
  attend(*policy, 20, {});
  EXPECT_EQ(policy->now(), 50u);
}

TEST_P(EveryPolicy, memory_stays_within_the_promised_bytes_a_page) {
  auto policy = plain(GetParam());
  constexpr PageIndex kPages = 20000;
  seal(*policy, 0, kPages - 1);
  std::vector<PageMass> masses;
  for (PageIndex page = 0; page < kPages; ++page) masses.push_back({page, 0.5 / kPages});
  attend(*policy, 1, masses);
  victims(*policy, 256);
  EXPECT_LE(policy->bytes(), kPages * Policy::kBytesPerPage + 65536);
}

class EveryAttentionPolicy : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Rules, EveryAttentionPolicy,
                         testing::Values("memdecay", "memdecay_n", "memdecay_n0", "snapkv", "tova"),
                         test_name);

// Case F67: an early favourite must not rule for ever, and nothing may overflow or stall.
TEST_P(EveryAttentionPolicy, an_early_favourite_falls_behind_and_scores_stay_finite) {
  auto policy = plain(GetParam());
  seal(*policy, 0, 9);
  for (Step step = 1; step <= 50; ++step) attend(*policy, step, {{.page = 3, .mass = 1.0}});
  seal(*policy, 10, 10);
  // A peak of memdecay_n fades by a bit in 4,096 tokens; everything else forgets within 400.
  const Step horizon = GetParam() == std::string_view("memdecay_n") ? 10000 : 400;
  Step overtaken = 0;
  for (Step step = 51; step <= horizon; ++step) {
    attend(*policy, step, {{.page = 3, .mass = 0.0}, {.page = 10, .mass = 0.2}});
    if (overtaken == 0 && policy->score(10) > policy->score(3)) overtaken = step;
  }
  RecordProperty("overtaken_at_step", static_cast<int>(overtaken));
  EXPECT_GT(policy->score(10), policy->score(3));
  for (Step step = horizon + 16; step <= 1000000; step += 16) {
    attend(*policy, step, {{.page = 3, .mass = 0.0}, {.page = 10, .mass = 0.2}});
  }
  for (PageIndex page = 0; page <= 10; ++page) EXPECT_TRUE(std::isfinite(policy->score(page)));
  EXPECT_EQ(victims(*policy, 11).size(), 11u);
}

// What differs between the forms.

TEST(Grace, a_newcomer_goes_last_until_it_was_resident_at_one_observation) {
  for (const char* name : {"memdecay_n", "memdecay_n0", "h2o", "norm_sum", "snapkv", "tova"}) {
    auto policy = plain(name);
    seal(*policy, 0, 1, Region::kPlan);
    attend(*policy, 1, {});
    seal(*policy, 2, 2, Region::kScratchpad);
    EXPECT_TRUE(policy->in_grace(2)) << name;
    EXPECT_EQ(victims(*policy, 3), (std::vector<PageIndex>{0, 1, 2})) << name;
    EXPECT_TRUE(policy->lowest(3, Activity::kActive, kAnyPage)[2].in_grace) << name;
    attend(*policy, 2, {{0, 0.4}, {1, 0.4}});  // page 2 is not listed, yet observed
    EXPECT_EQ(victims(*policy, 1), (std::vector<PageIndex>{2})) << name;
    policy->on_evicted(2);
    policy->on_restored(2);
    EXPECT_FALSE(policy->in_grace(2)) << "a restored page does not get it again";
  }
}

TEST(Grace, the_paper_and_what_attention_does_not_drive_have_none_and_it_can_be_switched_off) {
  for (const char* name : {"memdecay", "lru", "random", "streaming", "truncation"}) {
    auto policy = plain(name);
    seal(*policy, 0, 0);
    EXPECT_FALSE(policy->in_grace(0)) << name;
  }
  auto without = make_policy({.name = "memdecay_n", .sinks = 0, .grace = false}).value();
  seal(*without, 0, 0);
  EXPECT_FALSE(without->in_grace(0));
}

TEST(Lru, order_is_by_last_seal_or_restore_and_attention_is_no_use) {
  auto policy = plain("lru");
  seal(*policy, 0, 3);
  attend(*policy, 5, {{.page = 0, .mass = 0.9}});
  policy->on_evicted(1);
  policy->on_restored(1);
  EXPECT_EQ(victims(*policy, 4), (std::vector<PageIndex>{0, 2, 3, 1}));
}

TEST(MemdecayN, an_observation_without_movable_mass_is_skipped_and_counted) {
  auto policy = plain("memdecay_n");
  seal(*policy, 0, 1);
  const double before = policy->score(0);
  policy->on_observe({.step = 0, .tail = 0.997, .rest = 0.003});
  EXPECT_EQ(policy->skipped_observations(), 1u);
  EXPECT_EQ(policy->score(0), before);
  EXPECT_FALSE(policy->in_grace(0)) << "it was resident at an observation all the same";
  policy->on_observe({.step = 0, .tail = 0.99, .rest = 0.01});
  EXPECT_EQ(policy->skipped_observations(), 1u);
}

TEST(MemdecayN, no_more_than_the_top_tenth_is_refreshed_and_none_below_four) {
  auto policy =
      make_policy(
          {.name = "memdecay_n", .sinks = 0, .recent = 0, .refresh_rule = RefreshRule::kLift})
          .value();
  seal(*policy, 0, 39);  // four may be refreshed
  attend(*policy, 10, {{0, 0.16}, {1, 0.15}, {2, 0.14}, {3, 0.13}, {4, 0.12}});
  for (PageIndex page = 0; page < 4; ++page) EXPECT_EQ(policy->tref(page), 10u) << page;
  EXPECT_EQ(policy->tref(4), 0u) << "u is 4.8, but it is the fifth";
  attend(*policy, 20, {{7, 0.09}});
  EXPECT_EQ(policy->tref(7), 0u) << "u is 3.6";
}

TEST(MemdecayN, a_long_pinned_prompt_does_not_soak_up_the_refreshes) {
  auto policy =
      make_policy(
          {.name = "memdecay_n", .sinks = 0, .recent = 0, .refresh_rule = RefreshRule::kLift})
          .value();
  seal(*policy, 0, 99, Region::kSystem);
  seal(*policy, 100, 109);
  std::vector<PageMass> masses;
  for (PageIndex page = 0; page < 100; ++page) masses.push_back({page, 0.008});
  masses.push_back({105, 0.15});
  attend(*policy, 9, masses);
  EXPECT_EQ(policy->tref(105), 9u);
  EXPECT_EQ(policy->tref(50), 0u);
}

TEST(MemdecayN, decay_is_capped_in_half_lives) {
  auto policy = plain("memdecay_n");
  seal(*policy, 0, 0);
  const double fresh = policy->score(0);
  policy->on_step(31);
  EXPECT_NEAR(policy->score(0), fresh - 1.0, 1e-12);
  policy->on_step(1000000);
  EXPECT_NEAR(policy->score(0), fresh - 4.0, 1e-12);
}

// Both are worth the same at first; neither is ever refreshed.
TEST(MemdecayN, the_peak_remembers_a_short_use_that_the_mean_forgets) {
  for (double gamma : {0.0, 1.0}) {
    auto policy = make_policy({.name = "memdecay_n",
                               .sinks = 0,
                               .recent = 0,
                               .beta = 1.0,
                               .gamma = gamma,
                               .memory_tokens = 512.0,
                               .refresh_rule = RefreshRule::kNone})
                      .value();
    seal(*policy, 0, 7);
    attend(*policy, 1, {{3, 1.0}});  // eight times its share, once
    for (Step step = 2; step <= 512; ++step)
      attend(*policy, step, {{5, 0.1875}});  // 1.5 times, always
    EXPECT_EQ(policy->score(3) > policy->score(5), gamma == 1.0);
    if (gamma == 0.0) continue;
    EXPECT_EQ(policy->explain(3).back().name, "peak");
    EXPECT_NEAR(policy->explain(3).back().value, 3.0 - 511.0 / 512.0, 1e-9) << "a bit in G tokens";
  }
}

// 128 queries of a prompt weigh as one generated token, and what they look at makes no peak.
TEST(MemdecayN, a_prefills_observation_counts_as_one_query_and_makes_no_peak) {
  auto prefilled = plain("memdecay_n");
  auto generated = plain("memdecay_n");
  const std::vector<PageMass> masses = {{3, 1.0}};
  for (Policy* policy : {prefilled.get(), generated.get()}) seal(*policy, 0, 7);
  prefilled->on_observe({.step = 0, .query_position = kFarAway, .queries = 128, .masses = masses});
  generated->on_observe({.step = 1, .query_position = kFarAway, .queries = 1, .masses = masses});
  const auto term = [](const Policy& policy, size_t index) { return policy.explain(3)[index]; };
  EXPECT_NEAR(term(*prefilled, 2).value, term(*generated, 2).value, 1e-9);
  EXPECT_EQ(term(*prefilled, 3).name, "peak");
  EXPECT_EQ(term(*prefilled, 3).value, 0.0);
  EXPECT_NEAR(term(*generated, 3).value, 3.0, 1e-9);
}

TEST(MemdecayN, hints_scale_the_half_life_and_supersede_takes_three_bits_once) {
  auto policy = plain("memdecay_n");
  seal(*policy, 0, 2);
  policy->on_hint(0, 1.0);
  policy->on_hint(1, 0.0);
  policy->on_supersede(2);
  policy->on_supersede(2);
  policy->on_step(31);
  const double base = policy->score(2) + 1.0 + 3.0;
  EXPECT_NEAR(policy->score(0), base - 0.25, 1e-12);
  EXPECT_NEAR(policy->score(1), base - 4.0, 1e-12);
  EXPECT_EQ(policy->explain(2).back().name, "superseded");
  EXPECT_NEAR(policy->explain(2).back().value, -3.0, 1e-12);
}

TEST(MemdecayN, the_sampling_interval_does_not_change_what_is_remembered) {
  auto often = plain("memdecay_n");
  auto seldom = plain("memdecay_n");
  for (Policy* policy : {often.get(), seldom.get()}) seal(*policy, 0, 7);
  const std::vector<PageMass> masses = {{2, 0.3}};
  for (Step step = 1; step <= 1600; ++step) {
    attend(*often, step, masses);
    if (step % 16 != 0) continue;
    seldom->on_observe(
        {.step = step, .query_position = kFarAway, .queries = 16, .rest = 0.7, .masses = masses});
  }
  for (PageIndex page = 0; page < 8; ++page) {
    EXPECT_NEAR(often->score(page), seldom->score(page), 0.02) << page;
  }
}

}  // namespace
}  // namespace memdecay::policy
