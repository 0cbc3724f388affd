// Configuration: words and file go through one table; what contradicts itself is refused.
// Thread: one. The messages' wording is not tested, the key and the line are.
#include "daemon/server/config.h"

#include <gtest/gtest.h>

#include <string>

#include "daemon/base/values.h"
#include "daemon/server/config_table.h"
#include "proto/contract/error.h"

namespace memdecay::server {
namespace {

absl::StatusOr<Config> with_words(std::initializer_list<const char*> words) {
  Config config;
  for (const char* word : words) {
    if (absl::Status status = apply_setting_word(config, word); !status.ok()) return status;
  }
  return resolve(std::move(config));
}

TEST(Config, scenario_words_are_short_forms_of_keys) {
  const auto config = with_words({"device=8", "host=16", "page=64KiB", "policy=lru", "sinks=0"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ledger.device_pages, 8u);
  EXPECT_EQ(config->ledger.host_pages, 16u);
  EXPECT_EQ(config->page_bytes, 65536u);
  EXPECT_EQ(config->ledger.policy.name, "lru");
  EXPECT_EQ(config->ledger.policy.sinks, 0u);
}

TEST(Config, every_key_is_read_back_as_it_is_printed) {
  Config config;
  for (const Setting& setting : settings()) {
    const std::string value =
        setting.example.empty() ? get_field(setting, config) : std::string(setting.example);
    const std::string bare = value == "\"\"" ? std::string() : value;
    ASSERT_TRUE(set_field(setting, config, bare).ok()) << setting.key << " = " << value;
    EXPECT_EQ(get_field(setting, config), value) << setting.key;
  }
}

TEST(Config, later_tiers_are_unsupported_and_not_unknown) {
  EXPECT_EQ(error_code(with_words({"disk=32"}).status()), ErrorCode::kUnsupported);
  EXPECT_EQ(error_code(with_words({"remote.url=x"}).status()), ErrorCode::kUnsupported);
  EXPECT_EQ(error_code(with_words({"nonsense=1"}).status()), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(with_words({"nonsense"}).status()), ErrorCode::kInvalidArgument);
}

TEST(Config, bytes_become_pages_of_whole_slabs) {
  const auto config = with_words({"device.bytes=1MiB", "page_bytes=6000", "device.slab_pages=2"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ledger.device_pages, (1048576u / 12288u) * 2u);
}

TEST(Config, contradictions_are_refused) {
  for (const auto& words : std::initializer_list<std::initializer_list<const char*>>{
           {"device.pages=8", "device.bytes=1MiB", "page_bytes=4096"},
           {"host.pages=8", "host.bytes=1MiB"},
           {"watermark.high=80", "watermark.low=81"},
           {"device=2", "device.slab_pages=3"},
           {"mode=lossy", "lossy_allowed=no"},
           {"policy=lru", "policy.alpha=1"},
           {"policy=memdecay", "policy.beta=1"}}) {
    EXPECT_EQ(error_code(with_words(words).status()), ErrorCode::kInvalidArgument)
        << *words.begin();
  }
}

TEST(Config, lines_are_those_of_the_file) {
  const auto config = parse_yaml("device:\n  pages: 8\n\npolicy.regions.plan.b: -1\n");
  ASSERT_FALSE(config.ok());
  const auto nested = parse_yaml("a:\n  b:\n    c: 1\n");
  EXPECT_EQ(error_detail(nested.status()).asked, "a.b.c (line 3)");
}

TEST(Config, regions_are_set_by_name_or_number) {
  const auto config =
      parse_yaml("policy.regions.plan.half_life_tokens: .inf\npolicy.regions.8.b: 0.5\n");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto& regions = config->ledger.policy.regions;
  ASSERT_EQ(regions.size(), 9u);
  EXPECT_TRUE(regions[region_id(Region::kPlan)].half_life > 1e300);
  EXPECT_EQ(regions[8].b, 0.5);
  EXPECT_FALSE(parse_yaml("policy.regions.nowhere.b: 1\n").ok());
}

TEST(Config, expected_lift_is_a_word_a_list_or_a_list_a_region) {
  for (const char* text : {"policy: {expected_lift: one}", "policy: {expected_lift: [7, 1.6, 0.4]}",
                           "policy: {expected_lift: {all: [7, 1.6], user: [3, 2], 7: [1]},"
                           " regions: {7: {b: 0.5}}}"}) {
    const auto config = parse_yaml(text);
    ASSERT_TRUE(config.ok()) << text << ": " << config.status();
    const auto again = parse_yaml(print_yaml(*config));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->ledger.policy.expected_lift, config->ledger.policy.expected_lift) << text;
  }
  const auto wrong = parse_yaml("policy:\n  expected_lift:\n    user: [3, x]\n");
  EXPECT_EQ(error_detail(wrong.status()).asked, "policy.expected_lift.user (line 3)");
}

TEST(Config, sizes_are_strict) {
  EXPECT_EQ(*base::parse_size("10GB"), 10'000'000'000u);
  EXPECT_EQ(*base::parse_size("10GiB"), 10'737'418'240u);
  for (const char* wrong : {"", "10G", "100 gigs", "-1", "1.5GiB", "GiB", "99999999999TiB"}) {
    EXPECT_FALSE(base::parse_size(wrong).ok()) << wrong;
  }
  for (const uint64_t bytes :
       {0ull, 1ull, 4096ull, 10'000'000'000ull, 10'737'418'240ull, 12345ull}) {
    EXPECT_EQ(*base::parse_size(base::print_size(bytes)), bytes);
  }
}

TEST(Config, broken_yaml_is_an_error_and_no_exception) {
  for (const char* text : {"[", "- a\n- b\n", "a: [b", "? [x]\n: 1\n", "tenants: 3\n"}) {
    EXPECT_FALSE(parse_yaml(text).ok()) << text;
  }
  EXPECT_TRUE(parse_yaml("").ok());
}

}  // namespace
}  // namespace memdecay::server
