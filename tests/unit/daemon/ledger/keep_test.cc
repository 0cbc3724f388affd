// What the ledger keeps of pages that nobody needs: which rule let an entry go, and by which terms;
// what is admitted; how long a chain of lost pages is followed. The order itself is in
// tests/unit/daemon/policy/retention/test_order.cc, the rules over time in tests/scenarios/P.
#include "daemon/ledger/keep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "tests/unit/daemon/ledger/ledger_world.h"

namespace memdecay::ledger {
namespace {

class KeepTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(world_.ledger().audit(), std::vector<std::string>{}); }

  // A session of one page whose tokens are all `token`, which ends at once.
  void entry(TokenId token) {
    const SessionId session = world_.open(engine_, Mode::kExact);
    ASSERT_TRUE(world_.fill(engine_, session, 1, token, 0).ok());
    world_.ask(CloseSession{.origin = engine_, .session = session});
  }
  void pressure(uint32_t pages) {
    world_.ask(Pressure{.origin = engine_, .pages = pages});
    world_.finish_copies();
  }
  std::vector<DecisionReport> drops() {
    std::vector<DecisionReport> found;
    for (const DecisionReport& report : world_.ledger().state().decisions) {
      if (report.kind == "drop") found.push_back(report);
    }
    return found;
  }
  static std::map<std::string, double> terms(const DecisionReport& report) {
    return {report.terms.begin(), report.terms.end()};
  }

  LedgerWorld world_{small_pool(4, 2)};
  Origin engine_ = world_.attach();
};

TEST_F(KeepTest, a_dropped_entry_says_by_which_terms) {
  entry(1);
  world_.advance(Duration::from_seconds(60));
  entry(2);
  pressure(4);
  world_.advance(Duration::from_seconds(60));
  entry(3);
  pressure(4);
  ASSERT_EQ(drops().size(), 1u);
  auto of = terms(drops().front());
  EXPECT_DOUBLE_EQ(of.at("recency"), -1) << "120 s unused, at H = 120 s a doubling of use";
  EXPECT_DOUBLE_EQ(of.at("uses"), 0);
  EXPECT_NEAR(of.at("b"), -0.737, 0.001) << "user text, b = 0.6";
  EXPECT_EQ(of.at("cut_off"), 0);
  EXPECT_NEAR(drops().front().score, -1.737, 0.001);
  EXPECT_FALSE(drops().front().saved_by.empty());
}

TEST_F(KeepTest, an_entry_that_leaves_the_device_says_so_too) {
  entry(1);
  world_.advance(Duration::from_seconds(30));
  pressure(4);
  const DecisionReport report = world_.ledger().state().decisions.back();
  EXPECT_EQ(report.kind, "evict");
  EXPECT_DOUBLE_EQ(terms(report).at("recency"), -0.25);
}

TEST_F(KeepTest, what_is_not_known_admits_and_says_so) {
  EXPECT_NE(report_status(world_.ledger()).host.admission.find("all"), std::string::npos);
  Options options = small_pool(4, 2);
  options.retention.compute_us_per_token = 10;
  Effects effects;
  ASSERT_TRUE(world_.ledger().reconfigure(Instant{2'000'000'000}, options, effects).ok());
  EXPECT_NE(report_status(world_.ledger()).host.admission.find("no restore"), std::string::npos);
  entry(1);
  pressure(4);
  EXPECT_EQ(report_status(world_.ledger()).host.used_pages, 1u);
}

TEST_F(KeepTest, restores_are_measured_where_they_are_not_declared) {
  Options options = small_pool(4, 2);
  options.retention.compute_us_per_token = 10;  // 160 us a page
  Effects effects;
  ASSERT_TRUE(world_.ledger().reconfigure(Instant{2'000'000'000}, options, effects).ok());
  const SessionId session = world_.open(engine_, Mode::kLossy);
  ASSERT_TRUE(world_.fill(engine_, session, 1, 7, 0).ok());
  world_.ask(Park{.origin = engine_, .session = session, .state = SessionState::kWaitingUser});
  world_.ask(EvictPages{.origin = engine_, .session = session, .pages = {0}});
  world_.step(GaveUp{.origin = engine_, .session = session, .pages = {0}});
  world_.finish_copies();
  world_.ask(Unpark{.origin = engine_, .session = session});
  world_.advance(Duration::from_milliseconds(100));  // 256 bytes in 100 ms
  world_.finish_copies();
  EXPECT_NEAR(restore_bytes_per_s(world_.ledger().state()), 2560, 1);
  world_.ask(
      CloseSession{.origin = engine_, .session = session, .what = CloseSession::What::kForget});
  entry(1);
  world_.advance(Duration::from_seconds(700));  // its session can be resumed no longer
  pressure(4);
  EXPECT_EQ(world_.ledger().state().counters.values.at("store_rejected_total|reason=admission"), 1);
}

TEST_F(KeepTest, pages_of_any_size_give_the_host_tier_its_entries) {
  Options options = small_pool(4, 0);
  options.host_bytes = 256 * 100;
  LedgerWorld world(options);
  EXPECT_EQ(world.ledger().state().keep.host_entries, 0u) << "no page was seen yet";
  const Origin engine = world.attach();
  const SessionId session = world.open(engine, Mode::kExact);
  ASSERT_TRUE(world.fill(engine, session, 1, 1, 0).ok());
  world.ask(CloseSession{.origin = engine, .session = session});
  EXPECT_EQ(world.ledger().state().keep.host_entries, 100u);
  options.host_bytes = 256 * 10;
  Effects effects;
  ASSERT_TRUE(world.ledger().reconfigure(Instant{2'000'000'000}, options, effects).ok());
  EXPECT_EQ(world.ledger().state().keep.host_entries, 10u);
}

}  // namespace
}  // namespace memdecay::ledger
