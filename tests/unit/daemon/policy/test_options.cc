// Options: what a policy cannot honour is refused with invalid_argument and the option's name.
// Thread: one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "daemon/policy/keys.h"
#include "daemon/policy/policy.h"
#include "proto/contract/error.h"

namespace memdecay::policy {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The text of the refusal; empty if the options were accepted.
std::string refusal(const std::string& name, const std::function<void(PolicyOptions&)>& change) {
  PolicyOptions options{.name = name};
  change(options);
  const absl::StatusOr<std::unique_ptr<Policy>> made = make_policy(options);
  if (made.ok()) return "";
  EXPECT_EQ(error_code(made.status()), ErrorCode::kInvalidArgument);
  return error_detail(made.status()).asked;
}

TEST(PolicyOptions, defaults_are_accepted_by_every_policy) {
  for (std::string_view name : policy_names()) {
    EXPECT_EQ(refusal(std::string(name), [](PolicyOptions&) {}), "") << name;
  }
  const std::vector<std::string_view> names = policy_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST(PolicyOptions, an_unknown_name_is_refused_with_the_known_ones) {
  const auto made = make_policy(PolicyOptions{.name = "lfu"});
  ASSERT_FALSE(made.ok());
  for (std::string_view name : policy_names()) {
    if (name.ends_with("+pin")) continue;
    EXPECT_NE(error_detail(made.status()).todo.find(name), std::string::npos) << name;
  }
  EXPECT_FALSE(make_policy(PolicyOptions{.name = "lru+pins"}).ok());
}

TEST(PolicyOptions, a_constant_of_another_policy_is_refused) {
  for (const char* name : {"lru", "memdecay_n", "memdecay_n0"}) {
    EXPECT_EQ(refusal(name, [](auto& o) { o.alpha = 0.5; }), "policy option alpha");
    EXPECT_EQ(refusal(name, [](auto& o) { o.rho = 0.9; }), "policy option rho");
    EXPECT_EQ(refusal(name, [](auto& o) { o.tau_uniform = 2; }), "policy option tau_uniform");
  }
  for (const char* name : {"lru", "memdecay", "memdecay_n0"}) {
    EXPECT_EQ(refusal(name, [](auto& o) { o.beta = 1; }), "policy option beta");
    EXPECT_EQ(refusal(name, [](auto& o) { o.gamma = 1; }), "policy option gamma");
    EXPECT_EQ(refusal(name, [](auto& o) { o.decay_cap = 4; }), "policy option decay_cap");
    EXPECT_EQ(refusal(name, [](auto& o) { o.memory_tokens = 9; }), "policy option memory_tokens");
    EXPECT_EQ(refusal(name, [](auto& o) { o.prior_evidence = 2; }), "policy option prior_evidence");
    EXPECT_EQ(refusal(name, [](auto& o) { o.refresh_lift = 4; }), "policy option refresh_lift");
    EXPECT_EQ(refusal(name, [](auto& o) { o.refresh_fraction = 0.1; }),
              "policy option refresh_fraction");
    EXPECT_EQ(refusal(name, [](auto& o) { o.expected_lift.emplace(); }),
              "policy option expected_lift");
    EXPECT_EQ(refusal(name, [](auto& o) { o.refresh_rule = RefreshRule::kNone; }),
              "policy option refresh_rule");
  }
  for (const char* name : {"lru", "h2o+pin", "truncation", "snapkv"}) {
    EXPECT_EQ(refusal(name, [](auto& o) { o.regions = default_regions(); }),
              "policy option regions");
    EXPECT_EQ(refusal(name, [](auto& o) { o.alpha = 0.5; }), "policy option alpha");
    EXPECT_EQ(refusal(name, [](auto& o) { o.seed = 1; }), "policy option seed");
  }
  for (const char* name : {"random", "tova", "memdecay"}) {
    EXPECT_EQ(refusal(name, [](auto& o) { o.window_queries = 8; }), "policy option window_queries");
  }
}

TEST(PolicyOptions, numbers_out_of_range_are_refused) {
  for (double bad : {kNan, -1.0, 2.1}) {
    EXPECT_EQ(refusal("memdecay_n", [&](auto& o) { o.beta = bad; }), "policy option beta") << bad;
  }
  for (double bad : {kNan, -1.0, 8.1}) {
    EXPECT_EQ(refusal("memdecay_n", [&](auto& o) { o.gamma = bad; }), "policy option gamma") << bad;
  }
  for (double bad : {kNan, -0.1, 1.1, kInfinity}) {
    EXPECT_EQ(refusal("memdecay", [&](auto& o) { o.rho = bad; }), "policy option rho") << bad;
  }
  for (double bad : {kNan, 0.0, -3.0}) {
    const auto set = [&](PolicyOptions& o) {
      o.regions = default_regions();
      o.regions[2].half_life = bad;
    };
    EXPECT_EQ(refusal("memdecay", set), "policy option half_life") << bad;
  }
  for (double bad : {kNan, 0.0, -3.0, kInfinity}) {
    const auto set = [&](PolicyOptions& o) {
      o.regions = default_regions();
      o.regions[2].b = bad;
    };
    EXPECT_EQ(refusal("memdecay_n", set), "policy option b") << bad;
  }
  for (double bad : {kNan, 0.0, 33.0, 7.5}) {
    EXPECT_EQ(refusal("snapkv", [&](auto& o) { o.window_queries = bad; }),
              "policy option window_queries")
        << bad;
  }
  for (double bad : {kNan, -1.0, 0.5, kInfinity}) {
    EXPECT_EQ(refusal("random", [&](auto& o) { o.seed = bad; }), "policy option seed") << bad;
  }
  EXPECT_EQ(refusal("memdecay", [](auto& o) { o.page_tokens = 0; }), "policy option page_tokens");
  EXPECT_EQ(refusal("memdecay", [](auto& o) { o.sinks = 1 << 20; }), "policy option sinks");
}

TEST(PolicyOptions, an_infinite_half_life_never_decays) {
  for (const char* name : {"memdecay", "memdecay_n", "memdecay_n0"}) {
    PolicyOptions options{.name = name, .sinks = 0};
    options.regions = default_regions();
    options.regions[2].half_life = kInfinity;
    auto policy = make_policy(options).value();
    policy->on_seal(0, {{{.region = 2, .tokens = 16}}});
    const double fresh = policy->score(0);
    policy->on_step(1000000);
    EXPECT_EQ(policy->score(0), fresh) << name;
    EXPECT_TRUE(std::isfinite(fresh));
  }
}

TEST(PolicyOptions, regions_are_the_seven_and_then_your_own) {
  const auto with = [](size_t count) {
    return [count](PolicyOptions& o) { o.regions.resize(count); };
  };
  EXPECT_EQ(refusal("memdecay_n", with(6)), "policy option regions");
  EXPECT_EQ(refusal("memdecay_n", with(12)), "");
  EXPECT_EQ(refusal("memdecay_n", [](auto& o) { o.pinned = {{7}}; }), "policy option pinned");
  const auto own = [](PolicyOptions& o) {
    o.regions.resize(8);
    o.pinned = {{7}};
  };
  EXPECT_EQ(refusal("memdecay_n", own), "");
}

TEST(PolicyOptions, beta_above_one_needs_a_named_expectation) {
  EXPECT_EQ(refusal("memdecay_n", [](auto& o) { o.beta = 1.5; }), "policy option beta");
  const auto named = [](double beta) {
    return [beta](PolicyOptions& o) {
      o.beta = beta;
      o.expected_lift.emplace();
    };
  };
  EXPECT_EQ(refusal("memdecay_n", named(2.0)), "");
  EXPECT_EQ(refusal("memdecay_n", named(8.1)), "policy option beta");
}

TEST(PolicyOptions, expected_lift_has_sane_numbers_for_known_regions) {
  const auto with = [](RegionId region, double lift) {
    return
        [region, lift](PolicyOptions& o) { o.expected_lift.emplace().regions[region].fill(lift); };
  };
  EXPECT_EQ(refusal("memdecay_n", with(6, 2.0)), "");
  EXPECT_EQ(refusal("memdecay_n", with(7, 2.0)), "policy option expected_lift");
  for (double bad : {kNan, 0.0, -1.0, kInfinity}) {
    EXPECT_EQ(refusal("memdecay_n", with(2, bad)), "policy option expected_lift") << bad;
    const auto all = [bad](PolicyOptions& o) {
      o.expected_lift.emplace().table = ExpectedLift::Table::kGiven;
      o.expected_lift->given.fill(bad);
    };
    EXPECT_EQ(refusal("memdecay_n", all), "policy option expected_lift") << bad;
  }
}

TEST(PolicyOptions, a_constant_of_another_refresh_rule_is_refused) {
  const auto with = [](RefreshRule rule, std::optional<double> PolicyOptions::*constant) {
    return [rule, constant](PolicyOptions& o) {
      o.refresh_rule = rule;
      o.*constant = 1.0;
    };
  };
  for (const RefreshRule rule : {RefreshRule::kLift, RefreshRule::kExpected}) {
    EXPECT_EQ(refusal("memdecay_n", with(rule, &PolicyOptions::refresh_lift)), "");
    EXPECT_EQ(refusal("memdecay_n", with(rule, &PolicyOptions::refresh_fraction)), "");
    EXPECT_EQ(refusal("memdecay_n", with(rule, &PolicyOptions::tau_uniform)),
              "policy option tau_uniform");
  }
  for (const RefreshRule rule : {RefreshRule::kUniform, RefreshRule::kNone}) {
    EXPECT_EQ(refusal("memdecay_n", with(rule, &PolicyOptions::refresh_lift)),
              "policy option refresh_lift");
    EXPECT_EQ(refusal("memdecay_n", with(rule, &PolicyOptions::refresh_fraction)),
              "policy option refresh_fraction");
  }
  EXPECT_EQ(refusal("memdecay_n", with(RefreshRule::kUniform, &PolicyOptions::tau_uniform)), "");
}

TEST(PolicyOptions, every_ablation_can_be_written) {
  const auto with = [](const char* key, const char* value) {
    return [key, value](PolicyOptions& o) {
      EXPECT_TRUE(set_option(o, key, value).ok()) << key << "=" << value;
    };
  };
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"beta", "0"},
           {"decay_cap", ".inf"},
           {"decay_cap", "0"},
           {"memory_tokens", "256"},
           {"refresh_rule", "none"},
           {"refresh_rule", "uniform"},
           {"refresh_rule", "expected"},
           {"expected_lift", "one"},
           {"expected_lift", "[7, 1.6, 0.4]"},
           {"expected_lift.tool_out", "[3, 0.4]"},
           {"regions.retrieval.b", "1.2"},
           {"regions.user.half_life_tokens", ".inf"}}) {
    EXPECT_EQ(refusal("memdecay_n", with(key, value)), "") << key << "=" << value;
  }
}

}  // namespace
}  // namespace memdecay::policy
