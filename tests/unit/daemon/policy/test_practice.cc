// What practice adds to the forms that decay, one rule a test: other clocks, growth, groups, boost,
// safety valve, your own regions, learnt half-lives. Thread: one. Not here: the same over random
// histories (test_random_histories.cc).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "daemon/policy/keys.h"
#include "daemon/policy/policy.h"
#include "proto/contract/error.h"

namespace memdecay::policy {
namespace {

using Words = std::initializer_list<std::pair<const char*, const char*>>;

PolicyOptions with(const std::string& name, Words words) {
  PolicyOptions options{.name = name, .sinks = 0, .recent = 0, .pinned = {{}}, .grace = false};
  for (const auto& [key, value] : words) {
    EXPECT_TRUE(set_option(options, key, value).ok()) << key << "=" << value;
  }
  // The default resets no age by attention, so that there is nothing to lift.
  if (name == "memdecay_n" && options.boost.has_value() && !options.refresh_rule.has_value()) {
    options.refresh_rule = RefreshRule::kLift;
  }
  return options;
}

std::unique_ptr<Policy> make(const std::string& name, Words words) {
  return make_policy(with(name, words)).value();
}

std::string refusal(const std::string& name, Words words) {
  const auto made = make_policy(with(name, words));
  return made.ok() ? "" : error_detail(made.status()).asked;
}

void seal(Policy& policy, PageIndex page, RegionId region) {
  policy.on_seal(page, {{{.region = region, .tokens = 16}}});
}

constexpr RegionId kUser = region_id(Region::kUser);
constexpr RegionId kScratch = region_id(Region::kScratchpad);

// Half-lives that the page has lost since it was fresh, in either form.
double lost(const Policy& policy, PageIndex page) {
  const RegionParameters& region = policy.options().regions[kUser];
  return policy.options().name == "memdecay" ? -std::log2(policy.score(page) / region.b)
                                             : std::log2(region.b) - policy.score(page);
}

class BothForms : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Practice, BothForms, testing::Values("memdecay", "memdecay_n"),
                         [](const auto& form) { return std::string(form.param); });

TEST_P(BothForms, a_region_may_count_turns) {
  auto policy = make(GetParam(), {{"regions.user.half_life_turns", "2"}});
  seal(*policy, 0, kUser);
  policy->on_step(1000);
  EXPECT_NEAR(lost(*policy, 0), 0.0, 1e-12) << "tokens are none of its business";
  policy->on_turn();
  EXPECT_NEAR(lost(*policy, 0), 0.5, 1e-12);
  policy->on_turn();
  EXPECT_NEAR(lost(*policy, 0), 1.0, 1e-12);
}

TEST_P(BothForms, a_region_may_count_seconds_which_never_run_back) {
  auto policy = make(GetParam(), {{"regions.user.half_life_seconds", "60"}});
  seal(*policy, 0, kUser);
  EXPECT_TRUE(policy->counts_seconds());
  policy->on_seconds(90);
  policy->on_seconds(30);
  policy->on_step(1000);
  policy->on_turn();
  EXPECT_NEAR(lost(*policy, 0), 1.5, 1e-12);
}

TEST_P(BothForms, the_kept_order_follows_every_clock) {
  for (const char* key : {"regions.user.half_life_turns", "regions.user.half_life_seconds"}) {
    auto policy = make(GetParam(), {{key, "2"}, {"regions.scratchpad.half_life_tokens", ".inf"}});
    seal(*policy, 0, kUser);  // b 0.6, falls
    seal(*policy, 1, kScratch);
    const auto first = [&policy] {
      return policy->lowest(1, Activity::kActive, [](PageIndex) { return true; }).at(0).page;
    };
    EXPECT_EQ(first(), 1u);
    for (int i = 1; i <= 4; ++i) {
      policy->on_turn();
      policy->on_seconds(i);
    }
    EXPECT_EQ(first(), 0u) << key;
  }
}

TEST_P(BothForms, a_turn_may_cost_half_lives_besides) {
  auto policy = make(
      GetParam(), {{"regions.user.half_life_tokens", "10"}, {"regions.user.turn_decay", "0.25"}});
  seal(*policy, 0, kUser);
  policy->on_step(10);
  policy->on_turn();
  policy->on_turn();
  EXPECT_NEAR(lost(*policy, 0), 1.5, 1e-12);
}

TEST_P(BothForms, a_growing_region_gains_two_doublings_and_no_more) {
  auto policy = make(GetParam(), {{"regions.user.doubling_tokens", "100"}});
  seal(*policy, 0, kUser);
  policy->on_step(100);
  EXPECT_NEAR(lost(*policy, 0), -1.0, 1e-12);
  policy->on_step(1000000);
  EXPECT_NEAR(lost(*policy, 0), -2.0, 1e-12) << "elders do not outlive what is used";
}

TEST_P(BothForms, a_held_group_decays_from_its_end_on) {
  auto policy =
      make(GetParam(), {{"regions.user.half_life_tokens", "10"}, {"regions.user.held", "true"}});
  for (PageIndex page = 0; page < 3; ++page) seal(*policy, page, kUser);
  policy->on_step(500);
  EXPECT_NEAR(lost(*policy, 0), 0.0, 1e-12);
  policy->on_end_group(0, 1, GroupEnd::kDecay);
  policy->on_step(510);
  EXPECT_NEAR(lost(*policy, 0), 1.0, 1e-12);
  EXPECT_NEAR(lost(*policy, 1), 1.0, 1e-12) << "one lifetime for all";
  EXPECT_NEAR(lost(*policy, 2), 0.0, 1e-12);
  policy->on_turn();  // a group that nobody ends ends with its turn
  policy->on_step(520);
  EXPECT_NEAR(lost(*policy, 2), 1.0, 1e-12);
  EXPECT_NEAR(lost(*policy, 0), 2.0, 1e-12) << "what had ended is not begun again";
}

TEST_P(BothForms, a_cut_group_falls_by_three_half_lives_at_once) {
  auto policy = make(GetParam(), {{"regions.user.held", "true"}});
  seal(*policy, 0, kUser);
  policy->on_end_group(0, 0, GroupEnd::kCut);
  EXPECT_NEAR(lost(*policy, 0), 3.0, 1e-12);
}

TEST_P(BothForms, a_reference_lifts_the_page_and_its_neighbours_for_a_while) {
  auto policy =
      make(GetParam(),
           {{"regions.user.half_life_tokens", "10"}, {"boost", "1.5"}, {"boost_neighbours", "2"}});
  for (PageIndex page = 0; page < 20; ++page) seal(*policy, page, kUser);
  policy->on_step(100);
  const double before = policy->score(13);
  policy->on_observe({.step = 100, .query_position = 100000, .rest = 0.4, .masses = {{{10, 0.6}}}});
  const auto decay = [&policy](PageIndex page) {
    return policy->explain(page).at(policy->options().name == "memdecay" ? 0 : 1).value;
  };
  const double top = policy->options().name == "memdecay" ? 0.6 * std::exp2(1.5) : 1.5;
  for (const PageIndex page : {8u, 9u, 10u, 11u, 12u}) EXPECT_NEAR(decay(page), top, 1e-12) << page;
  EXPECT_LE(policy->score(13), before + 0.5);
  EXPECT_EQ(policy->tref(13), 0u);
  EXPECT_EQ(policy->tref(12), 100u);
  policy->on_step(115);
  const double fresh = policy->options().name == "memdecay" ? 0.6 : 0.0;
  EXPECT_NEAR(decay(9), fresh, 1e-12) << "it lost the boost as it aged";
}

TEST_P(BothForms, the_safety_valve_takes_the_oldest_when_all_score_high) {
  auto policy = make(GetParam(), {{"valve_score", "-3"},
                                  {"regions.user.half_life_tokens", "40"},
                                  {"regions.scratchpad.half_life_tokens", "40"},
                                  {"regions.plan.half_life_tokens", "40"}});
  seal(*policy, 0, region_id(Region::kPlan));
  seal(*policy, 1, kScratch);
  policy->on_step(5);
  seal(*policy, 2, kUser);
  seal(*policy, 3, kScratch);  // lowest score of the young
  const auto order = [&policy] {
    std::vector<PageIndex> pages;
    for (const Victim& victim :
         policy->lowest(9, Activity::kActive, [](PageIndex) { return true; })) {
      pages.push_back(victim.page);
    }
    return pages;
  };
  EXPECT_EQ(order(), (std::vector<PageIndex>{1, 2, 3, 0})) << "the plan has no valve";
  policy->on_supersede(0);
  policy->on_step(60);
  if (policy->options().name == "memdecay_n") {
    EXPECT_LT(policy->score(0), -3.0);
    EXPECT_EQ(order().front(), 0u) << "what scores low goes first as ever";
  }
}

TEST(Practice, a_boost_or_valve_without_its_part_is_refused) {
  EXPECT_EQ(refusal("memdecay_n", {{"boost_neighbours", "1"}}), "policy option boost_neighbours");
  EXPECT_EQ(refusal("memdecay_n", {{"boost", "1"}, {"boost_neighbours", "1.5"}}),
            "policy option boost_neighbours");
  EXPECT_EQ(refusal("memdecay_n", {{"boost", "-1"}}), "policy option boost");
  EXPECT_EQ(refusal("memdecay_n", {{"boost", "1"}, {"refresh_rule", "none"}}),
            "policy option boost");
  EXPECT_EQ(refusal("memdecay_n", {{"valve_regions", "[user]"}}), "policy option valve_regions");
  EXPECT_EQ(refusal("memdecay_n", {{"valve_score", "0"}, {"valve_regions", "[]"}}),
            "policy option valve_regions");
  EXPECT_EQ(refusal("memdecay_n", {{"valve_score", "0"}, {"valve_regions", "[9]"}}),
            "policy option valve_regions");
}

TEST(Practice, forms_that_count_tokens_alone_refuse_it) {
  for (const Words words :
       {Words{{"regions.user.half_life_turns", "2"}},
        Words{{"regions.user.half_life_seconds", "2"}},
        Words{{"regions.user.doubling_tokens", "2"}}, Words{{"regions.user.turn_decay", "2"}},
        Words{{"regions.user.held", "true"}}}) {
    EXPECT_EQ(refusal("memdecay_n0", words), "policy option regions") << words.begin()->first;
    EXPECT_EQ(refusal("memdecay", words), "") << words.begin()->first;
  }
  for (const char* name : {"memdecay_n0", "lru", "streaming"}) {
    EXPECT_EQ(refusal(name, {{"boost", "1"}}), "policy option boost") << name;
    EXPECT_EQ(refusal(name, {{"valve_score", "1"}}), "policy option valve_score") << name;
  }
}

TEST(Practice, numbers_of_aging_out_of_range_are_refused) {
  for (const char* bad : {"0", "-1"}) {
    EXPECT_EQ(refusal("memdecay_n", {{"regions.user.half_life_turns", bad}}),
              "policy option half_life");
    EXPECT_EQ(refusal("memdecay_n", {{"regions.user.doubling_seconds", bad}}),
              "policy option doubling");
  }
  EXPECT_EQ(refusal("memdecay_n", {{"regions.user.turn_decay", "-0.1"}}),
            "policy option turn_decay");
  EXPECT_EQ(refusal("memdecay_n", {{"regions.user.turn_decay", ".inf"}}),
            "policy option turn_decay");
  PolicyOptions both = with("memdecay_n", {{"regions.user.half_life_tokens", "5"}});
  both.regions[kUser].doubling = 5.0;
  EXPECT_FALSE(make_policy(both).ok()) << "a region grows or decays";
}

TEST(Practice, your_own_regions_have_names_and_everything_else) {
  PolicyOptions options = with("memdecay_n", {{"own_regions", "[report, mail]"},
                                              {"regions.mail.b", "0.9"},
                                              {"regions.mail.half_life_turns", "3"},
                                              {"expected_lift.report", "[2]"},
                                              {"pinned", "[system, report]"}});
  auto policy = make_policy(options).value();
  ASSERT_EQ(policy->options().regions.size(), 9u);
  EXPECT_EQ(region_word(policy->options(), 8), "mail");
  EXPECT_EQ(region_of(policy->options(), "report"), RegionId{7});
  seal(*policy, 0, 7);
  EXPECT_EQ(policy->protection(0), Protection::kRegion);
  seal(*policy, 1, 8);
  EXPECT_NEAR(policy->score(1), std::log2(0.9), 1e-12);
  for (const char* bad : {"[system]", "[dialogue]", "[a, a]", "[Mail]", "[9]", "[all]", "[a-b]"}) {
    EXPECT_EQ(refusal("lru", {{"own_regions", bad}}), "policy option own_regions") << bad;
  }
  EXPECT_EQ(refusal("lru", {{"own_regions", "[mail]"}}), "") << "names are no constants";
}

TEST_P(BothForms, a_learnt_half_life_holds_within_four_times_the_configured_one) {
  auto policy = make(GetParam(), {{"regions.user.half_life_tokens", "40"}});
  seal(*policy, 0, kUser);
  policy->on_step(40);
  policy->set_half_life(kUser, 20.0);
  EXPECT_NEAR(lost(*policy, 0), 2.0, 1e-12);
  policy->set_half_life(kUser, 1.0);
  EXPECT_NEAR(lost(*policy, 0), 4.0, 1e-12);
  policy->set_half_life(kUser, 1e9);
  EXPECT_NEAR(lost(*policy, 0), 0.25, 1e-12);
}

TEST_P(BothForms, memory_stays_within_the_promised_bytes_with_everything_on) {
  auto policy = make(GetParam(), {{"regions.user.half_life_turns", "2"},
                                  {"regions.plan.half_life_seconds", "2"},
                                  {"boost", "1"}});
  constexpr PageIndex kPages = 20000;
  for (PageIndex page = 0; page < kPages; ++page) seal(*policy, page, kUser);
  policy->on_observe({.step = 1, .rest = 1.0});
  (void)policy->lowest(256, Activity::kActive, [](PageIndex) { return true; });
  EXPECT_LE(policy->bytes(), kPages * Policy::kBytesPerPage + 65536);
}

}  // namespace
}  // namespace memdecay::policy
