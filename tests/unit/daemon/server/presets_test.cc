// The preset files that are shipped: each is a configuration by itself, and says what its source
// says. Thread: one. Not here: how a configuration is read (config_test.cc).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/policy/layers.h"
#include "daemon/policy/policy.h"
#include "daemon/server/config.h"
#include "daemon/server/config_table.h"
#include "proto/contract/error.h"

namespace memdecay::server {
namespace {

Config preset(const std::string& name) {
  std::ifstream file(std::string(MEMDECAY_PRESETS_DIR) + "/" + name + ".yaml");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  absl::StatusOr<Config> config = parse_yaml(text.str());
  EXPECT_TRUE(config.ok()) << name << ": " << config.status();
  return config.ok() ? *std::move(config) : Config{};
}

const policy::RegionParameters& region(const Config& config, Region region) {
  return config.ledger.policy.regions.at(region_id(region));
}

void expect_paper_regions(const Config& config) {
  const std::vector<policy::RegionParameters> expected = policy::default_regions();
  ASSERT_EQ(config.ledger.policy.regions.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(config.ledger.policy.regions[i].b, expected[i].b) << i;
    EXPECT_EQ(config.ledger.policy.regions[i].half_life, expected[i].half_life) << i;
  }
}

TEST(Presets, default_writes_the_defaults_out) {
  const Config config = preset("default");
  EXPECT_EQ(config.ledger.policy.name, Config{}.ledger.policy.name);
  expect_paper_regions(config);
  for (const char* key :
       {"policy.pinned", "policy.beta", "policy.decay_cap", "policy.memory_tokens",
        "policy.prior_evidence", "policy.gamma", "policy.expected_lift", "policy.refresh_rule"}) {
    const Setting* const setting = find_setting(key);
    ASSERT_NE(setting, nullptr) << key;
    EXPECT_EQ(get_field(*setting, config), setting->example) << key;
  }
}

TEST(Presets, paper_has_the_published_constants) {
  const Config config = preset("paper");
  EXPECT_EQ(config.ledger.policy.name, "memdecay");
  EXPECT_EQ(config.ledger.policy.alpha, 0.5);
  EXPECT_EQ(config.ledger.policy.rho, 0.9);
  EXPECT_EQ(config.ledger.policy.tau_uniform, 2.0);
  expect_paper_regions(config);
}

TEST(Presets, practice_has_the_articles_rates_and_marks) {
  const Config config = preset("practice");
  EXPECT_EQ(config.ledger.watermark_high_percent, 90u);
  EXPECT_EQ(config.ledger.watermark_low_percent, 70u);
  EXPECT_EQ(region(config, Region::kSystem).b, 1.0);
  EXPECT_TRUE(std::isinf(region(config, Region::kSystem).half_life));
  EXPECT_EQ(region(config, Region::kUser).b, 0.7);
  EXPECT_NEAR(std::log(2) / region(config, Region::kUser).half_life, 0.05, 1e-15);
  EXPECT_EQ(region(config, Region::kScratchpad).b, 0.3);
  EXPECT_NEAR(std::log(2) / region(config, Region::kScratchpad).half_life, 0.2, 1e-15);
}

TEST(Presets, those_built_in_are_the_files) {
  for (const char* name : {"default", "paper", "practice"}) {
    const auto config = parse_yaml(absl::StrCat("policy.preset: ", name));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(policy::differences(config->ledger.policy, preset(name).ledger.policy).empty());
    EXPECT_TRUE(policy::differences(preset(name).ledger.policy, config->ledger.policy).empty());
    EXPECT_EQ(config->ledger.watermark_low_percent, preset(name).ledger.watermark_low_percent);
    EXPECT_TRUE(built_in_presets().contains(name));
  }
}

TEST(Presets, keys_lie_above_the_preset_wherever_it_stands) {
  const auto config = parse_yaml(
      "watermark.low: 80\npolicy:\n  regions: {user: {b: 0.9}}\n  alpha: 0.25\n"
      "  preset: practice\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ledger.policy.name, "memdecay");
  EXPECT_EQ(config->ledger.policy.alpha, 0.25);
  EXPECT_EQ(region(*config, Region::kUser).b, 0.9);
  EXPECT_NEAR(region(*config, Region::kUser).half_life, 13.86, 0.01);
  EXPECT_EQ(config->ledger.watermark_high_percent, 90u);
  EXPECT_EQ(config->ledger.watermark_low_percent, 80u);
  const auto again = parse_yaml(print_yaml(*config));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(policy::differences(again->ledger.policy, config->ledger.policy).empty());
  const auto other = parse_yaml("policy: {preset: practice, name: lru}");
  EXPECT_TRUE(other.ok()) << "a policy over a preset takes what it can honour: " << other.status();
}

TEST(Presets, a_preset_may_be_a_file_of_the_daemons_own_configuration) {
  const auto reader = [](const std::string& path) -> absl::StatusOr<std::string> {
    if (path == "/etc/mine.yaml") return "policy: {beta: 0.5}";
    if (path == "/etc/more.yaml") return "policy: {beta: 0.5}\ndevice.pages: 8";
    if (path == "/etc/list.yaml") return "- 1";
    if (path == "/etc/bad.yaml") return "policy: {regions: {user: {b: .nan}}}";
    return absl::NotFoundError("no such file");
  };
  const auto with = [&](const std::string& path) {
    return parse_yaml("policy.preset: " + path, reader);
  };
  ASSERT_TRUE(with("/etc/mine.yaml").ok());
  EXPECT_EQ(with("/etc/mine.yaml")->ledger.policy.beta, 0.5);
  for (const char* bad : {"/etc/more.yaml", "/etc/list.yaml", "/etc/bad.yaml", "/etc/none.yaml"}) {
    EXPECT_FALSE(with(bad).ok()) << bad;
  }
  EXPECT_FALSE(parse_yaml("policy.preset: /etc/mine.yaml").ok()) << "nobody reads files here";
}

TEST(Presets, a_tenant_has_its_own_layer) {
  const auto config = parse_yaml(
      "policy: {beta: 0.5}\ntenants:\n  - name: a\n"
      "  - {name: b, policy: {preset: paper, regions: {user: {b: 0.8}}}}\n"
      "  - {name: c, policy.beta: 0}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto& tenants = config->ledger.tenants;
  EXPECT_FALSE(tenants[0].policy.has_value());
  EXPECT_EQ(tenants[1].policy->name, "memdecay");
  EXPECT_EQ(tenants[1].policy->regions[region_id(Region::kUser)].b, 0.8);
  EXPECT_EQ(tenants[2].policy->beta, 0.0);
  const auto again = parse_yaml(print_yaml(*config));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ledger.tenants[2].policy->beta, 0.0);
  const auto wrong = parse_yaml("tenants:\n  - name: a\n    policy: {beta: -1}\n");
  EXPECT_EQ(error_detail(wrong.status()).asked, "tenants[0].policy.beta (line 3)");
  EXPECT_FALSE(parse_yaml("tenants: [{name: a, policy: {betas: 1}}]").ok());
}

TEST(Presets, practice_decays_as_its_formula_says) {
  auto policy = policy::make_policy(preset("practice").ledger.policy).value();
  const Region regions[] = {Region::kSystem, Region::kUser, Region::kScratchpad};
  for (PageIndex page = 0; page < 4; ++page) {
    policy->on_seal(page, {{{region_id(regions[page % 3]), 16}}});
  }
  policy->on_step(20);
  EXPECT_NEAR(policy->score(3), 1.0, 1e-12);
  EXPECT_NEAR(policy->score(1), 0.7 * std::exp(-0.05 * 20), 1e-12);
  EXPECT_NEAR(policy->score(2), 0.3 * std::exp(-0.2 * 20), 1e-12);
}

}  // namespace
}  // namespace memdecay::server
