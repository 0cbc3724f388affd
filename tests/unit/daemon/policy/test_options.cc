// Options: what a policy cannot honour is refused with invalid_argument and the option's name.
// Thread: one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

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
    EXPECT_EQ(refusal(name, [](auto& o) { o.decay_cap = 4; }), "policy option decay_cap");
    EXPECT_EQ(refusal(name, [](auto& o) { o.memory_tokens = 9; }), "policy option memory_tokens");
    EXPECT_EQ(refusal(name, [](auto& o) { o.prior_evidence = 2; }), "policy option prior_evidence");
    EXPECT_EQ(refusal(name, [](auto& o) { o.refresh_lift = 4; }), "policy option refresh_lift");
    EXPECT_EQ(refusal(name, [](auto& o) { o.refresh_fraction = 0.1; }),
              "policy option refresh_fraction");
    EXPECT_EQ(refusal(name, [](auto& o) { o.expected_lift.assign(7, shipped_expected_lift()); }),
              "policy option expected_lift");
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
  for (double bad : {kNan, -0.1, 1.1, kInfinity}) {
    EXPECT_EQ(refusal("memdecay", [&](auto& o) { o.rho = bad; }), "policy option rho") << bad;
  }
  for (double bad : {kNan, 0.0, -3.0}) {
    const auto set = [&](PolicyOptions& o) {
      o.regions = default_regions();
      o.regions[2].half_life_tokens = bad;
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
    options.regions[2].half_life_tokens = kInfinity;
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

TEST(PolicyOptions, beta_above_one_needs_a_calibrated_table) {
  EXPECT_EQ(refusal("memdecay_n", [](auto& o) { o.beta = 1.5; }), "policy option beta");
  const auto calibrated = [](PolicyOptions& o) {
    o.beta = 2.0;
    o.expected_lift.assign(7, shipped_expected_lift());
  };
  EXPECT_EQ(refusal("memdecay_n", calibrated), "");
  const auto short_one = [](PolicyOptions& o) {
    o.expected_lift.assign(6, shipped_expected_lift());
  };
  EXPECT_EQ(refusal("memdecay_n", short_one), "policy option expected_lift");
  const auto zero = [](PolicyOptions& o) { o.expected_lift.assign(7, DistanceTable{}); };
  EXPECT_EQ(refusal("memdecay_n", zero), "policy option expected_lift");
}

}  // namespace
}  // namespace memdecay::policy
