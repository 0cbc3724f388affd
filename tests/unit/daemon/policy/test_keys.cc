// Options as text: what is written is read back, what is wrong is refused with a sentence.
// Thread: one. Not here: which policy honours what (test_options.cc).
#include <gtest/gtest.h>

#include <cmath>

#include "daemon/policy/keys.h"

namespace memdecay::policy {
namespace {

TEST(OptionKeys, what_is_printed_is_read_back) {
  PolicyOptions options;
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"name", "memdecay_n"},
           {"pinned", "[system, 8]"},
           {"beta", "1.5"},
           {"decay_cap", ".inf"},
           {"refresh_rule", "expected"},
           {"expected_lift", "[7, 1.6, 0.4]"},
           {"expected_lift.user", "[2]"},
           {"regions.8.b", "0.25"},
           {"regions.plan.half_life_tokens", ".inf"}}) {
    ASSERT_TRUE(set_option(options, key, value).ok()) << key;
    const std::string printed = get_option(options, key);
    if (!printed.empty()) {
      EXPECT_EQ(printed, value) << key;
    }
  }
  PolicyOptions again;
  for (const OptionKey& option : option_keys()) {
    const std::string value = get_option(options, option.key);
    if (value.empty()) continue;
    EXPECT_TRUE(set_option(again, option.key, value).ok()) << option.key;
  }
  for (const auto& [key, value] : tables(options)) {
    EXPECT_TRUE(set_option(again, key, value).ok()) << key << "=" << value;
  }
  EXPECT_EQ(tables(again), tables(options));
  EXPECT_EQ(again.expected_lift, options.expected_lift);
  EXPECT_EQ(again.expected_lift->of(region_id(Region::kUser))[20], 2.0);
  EXPECT_EQ(again.expected_lift->of(region_id(Region::kPlan))[1], 1.6);
  EXPECT_EQ(again.expected_lift->of(region_id(Region::kPlan))[20], 0.4) << "the last goes on";
}

TEST(OptionKeys, the_examples_are_accepted) {
  for (const OptionKey& option : option_keys()) {
    PolicyOptions options;
    if (!option.example.empty()) {
      EXPECT_TRUE(set_option(options, option.key, option.example).ok()) << option.key;
      EXPECT_EQ(get_option(options, option.key), option.example);
    }
    EXPECT_FALSE(option.meaning.empty()) << option.key;
  }
}

TEST(OptionKeys, an_unknown_key_is_not_found_and_says_which_there_are) {
  PolicyOptions options;
  for (const char* key : {"", "betas", "regions.user", "regions.user.c", "regions.nowhere.b",
                          "expected_lift.nowhere", "regions.1024.b"}) {
    const absl::Status status = set_option(options, key, "1");
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << key;
    EXPECT_FALSE(status.message().empty()) << key;
  }
}

TEST(OptionKeys, a_value_of_another_kind_is_refused) {
  PolicyOptions options;
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"beta", ""},
           {"beta", "much"},
           {"beta", "nan"},
           {"beta", "1e999"},
           {"refresh_rule", "decile"},
           {"expected_lift", "two"},
           {"expected_lift", "[]"},
           {"expected_lift", "[1, nan]"},
           {"expected_lift", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"},
           {"expected_lift.user", "shipped"},
           {"pinned", "[system, nowhere]"},
           {"regions.user.b", "nan"},
           {"regions.user.half_life_tokens", "long"}}) {
    EXPECT_EQ(set_option(options, key, value).code(), absl::StatusCode::kInvalidArgument)
        << key << "=" << value;
  }
}

}  // namespace
}  // namespace memdecay::policy
