// Layers of options: what a layer changes, what it takes over, what it refuses. Thread: one.
#include <gtest/gtest.h>

#include "daemon/policy/layers.h"
#include "daemon/policy/policy.h"
#include "proto/contract/error.h"

namespace memdecay::policy {
namespace {

Presets presets() {
  PolicyOptions paper{.name = "memdecay"};
  paper.alpha = 0.5;
  paper.sinks = 99;
  return {{"paper", paper}};
}

absl::StatusOr<PolicyOptions> over(const PolicyOptions& base,
                                   std::initializer_list<OptionWord> words) {
  absl::StatusOr<PolicyOptions> options = layered(base, std::vector<OptionWord>(words), presets());
  if (!options.ok()) return options;
  const absl::Status status = make_policy(*options).status();
  if (!status.ok()) return status;
  return options;
}

PolicyOptions tuned() {
  PolicyOptions options;
  options.pinned = {{region_id(Region::kSystem)}};
  options.beta = 0.5;
  options.refresh_rule = RefreshRule::kLift;
  options.refresh_lift = 3.0;
  options.boost = 1.0;
  options.regions = default_regions();
  options.regions[2].half_life = 2.0;
  options.regions[2].clock = Clock::kTurns;
  return options;
}

TEST(Layers, a_layer_changes_what_it_names) {
  const auto options = over(tuned(), {{"regions.user.b", "0.9"}, {"beta", "0"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->beta, 0.0);
  EXPECT_EQ(options->regions[2].b, 0.9);
  EXPECT_EQ(options->regions[2].clock, Clock::kTurns);
  EXPECT_EQ(options->refresh_lift, 3.0);
}

TEST(Layers, another_policy_takes_over_only_what_it_can_honour) {
  for (std::string_view name : policy_names()) {
    const auto options = over(tuned(), {{"name", std::string(name)}});
    EXPECT_TRUE(options.ok()) << name << ": " << options.status();
  }
  EXPECT_FALSE(over(tuned(), {{"name", "h2o"}})->pinned.has_value());
  EXPECT_EQ(over(tuned(), {{"name", "memdecay"}})->regions[2].clock, Clock::kTurns);
  EXPECT_EQ(over(tuned(), {{"name", "memdecay_n0"}})->regions[2].clock, Clock::kTokens);
  EXPECT_EQ(over(tuned(), {{"name", "memdecay_n"}})->pinned->size(), 1u) << "it is the same one";
}

TEST(Layers, another_refresh_rule_drops_the_constants_of_the_old_one) {
  EXPECT_TRUE(over(tuned(), {{"refresh_rule", "uniform"}, {"tau_uniform", "3"}}).ok());
  EXPECT_TRUE(over(tuned(), {{"tau_uniform", "3"}, {"refresh_rule", "uniform"}}).ok());
  const auto none = over(tuned(), {{"refresh_rule", "none"}});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->boost.has_value());
}

TEST(Layers, what_the_layer_says_itself_is_never_left_out) {
  for (const auto& words :
       {std::vector<OptionWord>{{"name", "h2o"}, {"beta", "1"}},
        std::vector<OptionWord>{{"beta", "1"}, {"name", "h2o"}},
        std::vector<OptionWord>{{"refresh_rule", "none"}, {"refresh_lift", "2"}}}) {
    const auto options = layered(tuned(), words, presets());
    ASSERT_TRUE(options.ok());
    EXPECT_FALSE(make_policy(*options).ok()) << words.front().first;
  }
}

TEST(Layers, a_preset_replaces_all_but_what_is_the_daemons) {
  const auto options = over(tuned(), {{"rho", "0.8"}, {"preset", "paper"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->name, "memdecay");
  EXPECT_EQ(options->alpha, 0.5);
  EXPECT_EQ(options->rho, 0.8);
  EXPECT_FALSE(options->beta.has_value());
  EXPECT_EQ(options->sinks, 4u);
}

TEST(Layers, refusals_name_the_key_and_what_would_be_right) {
  const auto refusal = [](std::initializer_list<OptionWord> words) {
    const auto options = over(tuned(), words);
    EXPECT_EQ(error_code(options.status()), ErrorCode::kInvalidArgument);
    return error_detail(options.status());
  };
  EXPECT_EQ(refusal({{"preset", "theory"}}).asked, "policy.preset");
  EXPECT_NE(refusal({{"preset", "theory"}}).todo.find("paper"), std::string::npos);
  EXPECT_EQ(refusal({{"betas", "1"}}).asked, "policy.betas");
  EXPECT_NE(refusal({{"betas", "1"}}).todo.find("beta,"), std::string::npos);
  EXPECT_EQ(refusal({{"regions.nowhere.b", "1"}}).asked, "policy.regions.nowhere.b");
  EXPECT_EQ(refusal({{"beta", "nan"}}).asked, "policy.beta");
  EXPECT_FALSE(refusal({{"beta", "nan"}}).todo.empty());
}

TEST(Layers, names_of_own_regions_may_come_after_their_use) {
  EXPECT_TRUE(over(tuned(), {{"regions.mail.b", "0.5"}, {"own_regions", "[mail]"}}).ok());
}

TEST(Layers, differences_are_what_would_have_to_be_said) {
  const auto options = over(tuned(), {{"regions.user.b", "0.9"}, {"beta", "0"}});
  const std::vector<OptionWord> expected = {{"beta", "0"}, {"regions.user.b", "0.9"}};
  EXPECT_EQ(differences(*options, tuned()), expected);
  EXPECT_TRUE(differences(tuned(), tuned()).empty());
  EXPECT_TRUE(differences(PolicyOptions{.regions = default_regions()}, PolicyOptions{}).empty());
}

}  // namespace
}  // namespace memdecay::policy
