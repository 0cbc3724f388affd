// The baselines, a property each that sets it apart from the others, and what their twins protect.
// Thread: one. Not here: formulas (test_random_histories.cc), rules that hold for all
// (test_rules.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "daemon/policy/policy.h"
#include "proto/contract/error.h"

namespace memdecay::policy {
namespace {

std::unique_ptr<Policy> plain(const std::string& name) {
  return make_policy({.name = name, .sinks = 0, .recent = 0}).value();
}

void seal(Policy& policy, PageIndex first, PageIndex last, Region region = Region::kUser) {
  for (PageIndex page = first; page <= last; ++page) {
    policy.on_seal(page, {{{.region = region_id(region), .tokens = 16}}});
  }
}

void attend(Policy& policy, std::vector<PageMass> masses, uint32_t queries = 1) {
  double rest = 1.0;
  for (const PageMass& mass : masses) rest -= mass.mass;
  policy.on_observe({.step = policy.now() + 1, .queries = queries, .rest = rest, .masses = masses});
}

std::vector<PageIndex> victims(const Policy& policy, size_t count,
                               Activity activity = Activity::kActive) {
  std::vector<PageIndex> pages;
  for (const Victim& victim : policy.lowest(count, activity, [](PageIndex) { return true; })) {
    pages.push_back(victim.page);
  }
  return pages;
}

using Pages = std::vector<PageIndex>;

TEST(Twins, protect_system_pages_where_the_plain_baseline_does_not) {
  for (const char* name :
       {"h2o", "lru", "norm_sum", "random", "snapkv", "streaming", "tova", "truncation"}) {
    auto alone = plain(name);
    auto twin = plain(std::string(name) + "+pin");
    for (Policy* policy : {alone.get(), twin.get()}) {
      seal(*policy, 0, 0, Region::kSystem);
      seal(*policy, 1, 3);
    }
    EXPECT_EQ(alone->protection(0), Protection::kNone) << name;
    EXPECT_EQ(twin->protection(0), Protection::kRegion) << name;
    EXPECT_EQ(victims(*alone, 9).size(), 4u) << name;
    EXPECT_EQ(victims(*twin, 9).size(), 3u) << name;
    EXPECT_EQ(alone->score(2), twin->score(2)) << name;
  }
}

TEST(Twins, the_memdecay_forms_pin_by_themselves_and_can_be_told_not_to) {
  for (const char* name : {"memdecay", "memdecay+pin", "memdecay_n", "memdecay_n0"}) {
    auto policy = plain(name);
    seal(*policy, 0, 0, Region::kSystem);
    EXPECT_EQ(policy->protection(0), Protection::kRegion) << name;
  }
  auto bare =
      make_policy({.name = "memdecay", .sinks = 0, .pinned = std::vector<RegionId>{}}).value();
  seal(*bare, 0, 0, Region::kSystem);
  EXPECT_EQ(bare->protection(0), Protection::kRecent);
}

TEST(Twins, a_twin_without_regions_to_pin_is_refused) {
  const auto made = make_policy({.name = "h2o+pin", .pinned = std::vector<RegionId>{}});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(error_detail(made.status()).asked, "policy option pinned");
  const auto plan =
      make_policy({.name = "h2o+pin", .pinned = std::vector<RegionId>{region_id(Region::kPlan)}});
  EXPECT_TRUE(plan.ok());
}

TEST(Truncation, the_oldest_position_goes_first_sinks_included) {
  auto policy = make_policy({.name = "truncation", .sinks = 4, .recent = 1}).value();
  EXPECT_EQ(policy->options().sinks, 0u);
  seal(*policy, 0, 4);
  attend(*policy, {{0, 0.9}});
  EXPECT_EQ(victims(*policy, 9), (Pages{0, 1, 2, 3}));
  policy->on_evicted(0);
  policy->on_restored(0);
  EXPECT_EQ(victims(*policy, 1), (Pages{0})) << "coming back changes no position";
}

TEST(Streaming, sinks_stay_and_are_the_last_to_go_from_an_idle_session) {
  auto policy = make_policy({.name = "streaming", .sinks = 20, .recent = 1}).value();
  seal(*policy, 0, 4);
  EXPECT_EQ(victims(*policy, 9), (Pages{2, 3}));
  EXPECT_EQ(victims(*policy, 9, Activity::kIdle), (Pages{2, 3, 4, 0, 1}));
}

TEST(Random, draws_are_uniform_and_belong_to_the_seed) {
  const auto first_hundred = [](double seed) {
    auto policy = make_policy({.name = "random", .sinks = 0, .recent = 0, .seed = seed}).value();
    seal(*policy, 0, 999);
    return victims(*policy, 100);
  };
  EXPECT_EQ(first_hundred(1), first_hundred(1));
  EXPECT_NE(first_hundred(1), first_hundred(2));
  int in_first_half = 0;
  for (int seed = 0; seed < 100; ++seed) {
    for (PageIndex page : first_hundred(seed)) in_first_half += page < 500;
  }
  EXPECT_NEAR(in_first_half, 5000, 250) << "5 standard deviations";
}

TEST(Random, a_page_that_comes_back_draws_again) {
  auto policy = plain("random");
  seal(*policy, 0, 0);
  std::set<double> draws = {policy->score(0)};
  for (int time = 0; time < 20; ++time) {
    policy->on_evicted(0);
    policy->on_restored(0);
    draws.insert(policy->score(0));
  }
  EXPECT_EQ(draws.size(), 21u);
}

TEST(H2o, what_was_looked_at_long_ago_stays_and_norm_sum_corrects_for_age) {
  auto sum = plain("h2o");
  auto mean = plain("norm_sum");
  for (Policy* policy : {sum.get(), mean.get()}) {
    seal(*policy, 0, 1);
    for (int step = 0; step < 50; ++step) attend(*policy, {{0, 0.5}, {1, 0.5}});
    seal(*policy, 2, 2);
    for (int step = 0; step < 5; ++step) attend(*policy, {{0, 0.0}, {1, 0.2}, {2, 0.8}});
  }
  EXPECT_EQ(victims(*sum, 3), (Pages{2, 0, 1}));
  EXPECT_EQ(victims(*mean, 3), (Pages{0, 1, 2}));
}

TEST(H2o, an_observation_counts_for_each_of_its_queries) {
  auto policy = plain("h2o");
  seal(*policy, 0, 1);
  attend(*policy, {{0, 1.0}}, 10);
  for (int step = 0; step < 9; ++step) attend(*policy, {{1, 1.0}});
  EXPECT_EQ(victims(*policy, 1), (Pages{1}));
  attend(*policy, {{1, 1.0}}, 2);
  EXPECT_EQ(victims(*policy, 1), (Pages{0}));
}

TEST(Tova, only_the_last_observation_counts) {
  auto policy = plain("tova");
  seal(*policy, 0, 2);
  for (int step = 0; step < 50; ++step) attend(*policy, {{0, 0.9}, {1, 0.05}, {2, 0.05}});
  attend(*policy, {{0, 0.1}, {1, 0.6}, {2, 0.3}});
  EXPECT_EQ(victims(*policy, 3), (Pages{0, 2, 1}));
}

TEST(Snapkv, what_left_the_window_counts_no_more_and_a_prefill_chunk_fills_it) {
  auto policy =
      make_policy({.name = "snapkv", .sinks = 0, .recent = 0, .window_queries = 4}).value();
  seal(*policy, 0, 1);
  attend(*policy, {{0, 1.0}, {1, 0.0}});
  for (int step = 0; step < 3; ++step) attend(*policy, {{0, 0.4}, {1, 0.6}});
  EXPECT_EQ(victims(*policy, 1), (Pages{1})) << "0.55 against 0.45";
  attend(*policy, {{0, 0.4}, {1, 0.6}});
  EXPECT_EQ(victims(*policy, 1), (Pages{0}));
  attend(*policy, {{0, 0.9}, {1, 0.1}}, 512);
  EXPECT_NEAR(policy->score(0), 0.9 / 16, 1e-8) << "one chunk is the whole window";
}

TEST(Baselines, regions_hints_groups_and_supersedes_do_not_move_them) {
  for (const char* name :
       {"h2o", "lru", "norm_sum", "random", "snapkv", "streaming", "tova", "truncation"}) {
    auto policy = plain(name);
    seal(*policy, 0, 3);
    attend(*policy, {{1, 0.5}});
    const Pages before = victims(*policy, 4);
    policy->on_retag(before[0], {{{.region = region_id(Region::kPlan), .tokens = 16}}});
    policy->on_hint(before[0], 1.0);
    policy->on_supersede(before[3]);
    policy->on_end_group(before[3], before[3], GroupEnd::kCut);
    policy->on_step(1000);
    EXPECT_EQ(victims(*policy, 4), before) << name;
  }
}

}  // namespace
}  // namespace memdecay::policy
