// The preset files that are shipped: each is a configuration by itself, and says what its source
// says. Thread: one. Not here: how a configuration is read (config_test.cc).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "daemon/policy/policy.h"
#include "daemon/server/config.h"
#include "daemon/server/config_table.h"

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
    EXPECT_EQ(config.ledger.policy.regions[i].half_life_tokens, expected[i].half_life_tokens) << i;
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
  EXPECT_TRUE(std::isinf(region(config, Region::kSystem).half_life_tokens));
  EXPECT_EQ(region(config, Region::kUser).b, 0.7);
  EXPECT_NEAR(std::log(2) / region(config, Region::kUser).half_life_tokens, 0.05, 1e-15);
  EXPECT_EQ(region(config, Region::kScratchpad).b, 0.3);
  EXPECT_NEAR(std::log(2) / region(config, Region::kScratchpad).half_life_tokens, 0.2, 1e-15);
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
