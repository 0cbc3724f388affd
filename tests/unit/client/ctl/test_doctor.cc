// Every rule of the doctor: figures that make it speak, and the nearest that do not.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "client/ctl/doctor.h"

namespace memdecay::ctl {
namespace {

v1::RegionFigures& region(v1::GetFiguresResponse& figures, const std::string& name,
                          uint64_t evictions, uint64_t regrets) {
  v1::RegionFigures& out = *figures.add_regions();
  out.set_name(name);
  out.set_half_life_tokens(31);
  out.set_evictions(evictions);
  out.set_regrets(regrets);
  return out;
}

void count(google::protobuf::RepeatedPtrField<v1::Count>& counts, const std::string& name,
           uint64_t value) {
  v1::Count& out = *counts.Add();
  out.set_name(name);
  out.set_value(value);
}

// A daemon that has worked, and well.
v1::GetFiguresResponse healthy() {
  v1::GetFiguresResponse figures;
  figures.set_policy("memdecay_n");
  figures.set_regret_steps(64);
  figures.set_regret_ms(5000);
  region(figures, "system", 0, 0).set_pinned(true);
  region(figures, "user", 120, 12);
  figures.set_pages(1000);
  figures.set_approximate_pages(100);
  count(*figures.mutable_lookups(), "hit", 300);
  count(*figures.mutable_lookups(), "miss", 300);
  figures.set_asked(120);
  figures.set_late_answers(2);
  figures.set_thrashes(2);
  v1::TierStatus& host = *figures.add_tiers();
  host.set_tier(v1::TIER_HOST);
  host.set_limit_pages(1000);
  return figures;
}

std::vector<std::string> names(const v1::GetFiguresResponse& figures) {
  std::vector<std::string> out;
  for (const Finding& finding : diagnose(figures)) out.push_back(finding.name);
  return out;
}
using Names = std::vector<std::string>;

TEST(doctor, has_nothing_to_say_of_a_healthy_daemon_or_a_fresh_one) {
  EXPECT_EQ(names(healthy()), Names{});
  EXPECT_EQ(names({}), Names{});
  EXPECT_NE(render({}, healthy()).find("healthy: 120 evictions, 600 look-ups"), std::string::npos);
}

TEST(doctor, regret_names_region_figures_and_the_next_half_life) {
  auto figures = healthy();
  figures.mutable_regions(1)->set_regrets(37);
  const std::vector<Finding> findings = diagnose(figures);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].seen,
            "user pages come back often: 37 of 120 evictions returned within 64 steps");
  EXPECT_EQ(findings[0].advice, "raise half_life of user (31 -> 62)");
  EXPECT_EQ(findings[0].key, "policy.regions.user.half_life_tokens");
  figures.mutable_regions(1)->set_regrets(23);
  EXPECT_EQ(names(figures), Names{}) << "fewer than one in five";
  figures.mutable_regions(1)->set_evictions(19);
  figures.mutable_regions(1)->set_regrets(19);
  EXPECT_EQ(names(figures), Names{}) << "too few to go by";
}

TEST(doctor, advises_room_where_no_half_life_can_be_raised) {
  auto figures = healthy();
  figures.mutable_regions(1)->set_regrets(60);
  figures.set_policy("lru");
  EXPECT_EQ(diagnose(figures).at(0).key, "budget");
  figures.set_policy("memdecay_n");
  figures.mutable_regions(1)->set_half_life_tokens(std::numeric_limits<double>::infinity());
  EXPECT_EQ(diagnose(figures).at(0).key, "budget");
}

TEST(doctor, pages_of_waiting_sessions_that_return_at_once_want_room) {
  auto figures = healthy();
  figures.mutable_regions(1)->set_idle_regrets(24);
  EXPECT_EQ(names(figures), Names{"idle_regret"});
  figures.mutable_regions(1)->set_idle_regrets(23);
  EXPECT_EQ(names(figures), Names{});
}

TEST(doctor, pins_beyond_their_budget) {
  auto figures = healthy();
  figures.set_pin_overflows(1);
  EXPECT_EQ(names(figures), Names{"pin_overflow"});
  EXPECT_EQ(diagnose(figures)[0].symptom, "instructions forgotten");
}

TEST(doctor, system_pages_that_leave_though_nothing_pins_them) {
  auto figures = healthy();
  figures.mutable_regions(0)->set_evictions(3);
  EXPECT_EQ(names(figures), Names{}) << "pinned: they left while their session waited";
  figures.mutable_regions(0)->set_pinned(false);
  EXPECT_EQ(names(figures), Names{"system_leaves"});
}

TEST(doctor, a_third_of_the_pages_approximate) {
  auto figures = healthy();
  figures.set_approximate_pages(330);
  EXPECT_EQ(names(figures), Names{"approximate"});
  figures.set_approximate_pages(329);
  EXPECT_EQ(names(figures), Names{});
  figures.set_pages(49);
  figures.set_approximate_pages(49);
  EXPECT_EQ(names(figures), Names{});
}

TEST(doctor, pages_that_go_back_and_forth) {
  auto figures = healthy();
  figures.set_thrashes(6);
  EXPECT_EQ(names(figures), Names{"thrash"});
  figures.set_thrashes(5);
  EXPECT_EQ(names(figures), Names{}) << "less than one in twenty";
  figures.mutable_regions(1)->set_evictions(40);
  EXPECT_EQ(names(figures), (Names{"regret", "thrash"}));
  figures.mutable_regions(1)->set_regrets(0);
  figures.set_thrashes(4);
  EXPECT_EQ(names(figures), Names{});
}

TEST(doctor, engines_that_answer_late) {
  auto figures = healthy();
  figures.set_late_answers(6);
  EXPECT_EQ(names(figures), Names{"late_answers"});
  EXPECT_EQ(diagnose(figures)[0].symptom, "slow steps");
  figures.set_late_answers(5);
  EXPECT_EQ(names(figures), Names{});
}

TEST(doctor, lookups_that_find_nothing) {
  auto figures = healthy();
  figures.mutable_lookups(0)->set_value(75);
  EXPECT_EQ(names(figures), Names{"lookups_miss"});
  figures.mutable_lookups(0)->set_value(76);
  EXPECT_EQ(names(figures), Names{});
}

TEST(doctor, a_host_tier_that_does_not_hold_what_leaves) {
  auto figures = healthy();
  figures.set_lost_pages(1);
  EXPECT_EQ(names(figures), Names{"host_full"});
  EXPECT_NE(diagnose(figures)[0].seen.find("the host tier is too small"), std::string::npos);
  figures.mutable_tiers(0)->set_limit_pages(0);
  EXPECT_NE(diagnose(figures)[0].seen.find("there is no host tier"), std::string::npos);
  figures.set_lost_pages(0);
  figures.set_host_dropped(20);
  figures.set_store_rejected(10);
  EXPECT_EQ(names(figures), Names{"host_full"});
  figures.set_host_dropped(19);
  EXPECT_EQ(names(figures), Names{}) << "29 of 149 is less than one in five";
}

TEST(doctor, memory_that_does_not_fall_names_what_holds_it) {
  auto figures = healthy();
  figures.mutable_regions(1)->set_evictions(10);
  figures.mutable_regions(1)->set_regrets(0);
  figures.set_thrashes(0);
  figures.set_exhausted(3);
  count(*figures.mutable_skipped(), "pinned", 20);
  count(*figures.mutable_skipped(), "exact_mode_running", 80);
  ASSERT_EQ(names(figures), Names{"nothing_leaves"});
  EXPECT_NE(diagnose(figures)[0].seen.find("mostly for exact_mode_running (80)"),
            std::string::npos);
  EXPECT_NE(diagnose(figures)[0].advice.find("park"), std::string::npos);
  figures.set_exhausted(0);
  EXPECT_EQ(names(figures), Names{}) << "nobody went without";
}

}  // namespace
}  // namespace memdecay::ctl
