// The ledger's rules, one step at a time: who is refused with which code, what is asked of engines,
// what a completion may change. What needs several engines and time is in tests/scenarios.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "daemon/ledger/transitions.h"
#include "proto/contract/error.h"
#include "tests/unit/daemon/ledger/ledger_world.h"

namespace memdecay::ledger {
namespace {

ErrorCode code(const std::optional<Reply>& reply) {
  return reply.has_value() ? error_code(reply->status) : ErrorCode::kInternal;
}

class LedgerTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(world_.ledger().audit(), std::vector<std::string>{}); }

  LedgerWorld world_{small_pool(4, 8)};
  Origin engine_ = world_.attach();
};

TEST(ledger_tables, no_state_follows_itself_and_dropped_is_final) {
  for (int state = 0; state < kPageStates; ++state) {
    const auto page = static_cast<PageState>(state);
    EXPECT_FALSE(page_may_become(page, page));
    EXPECT_FALSE(page_may_become(PageState::kDropped, page));
  }
  for (int state = 0; state < kSlotStates; ++state) {
    const auto slot = static_cast<SlotState>(state);
    EXPECT_FALSE(slot_may_become(slot, slot));
  }
  EXPECT_FALSE(slot_may_become(SlotState::kQuarantined, SlotState::kReserved));
}

TEST_F(LedgerTest, older_epoch_is_stale) {
  Origin older = engine_;
  older.epoch = Epoch{0};
  EXPECT_EQ(code(world_.ask(OpenSession{.origin = older, .layout = LedgerWorld::layout()})),
            ErrorCode::kStaleEpoch);
}

TEST_F(LedgerTest, unknown_engine_has_no_permission) {
  Origin nobody = engine_;
  nobody.engine = EngineId{999};
  EXPECT_EQ(code(world_.ask(OpenSession{.origin = nobody, .layout = LedgerWorld::layout()})),
            ErrorCode::kPermission);
}

TEST_F(LedgerTest, other_page_size_is_rejected) {
  LayoutRef layout = LedgerWorld::layout();
  layout.page_tokens = 32;
  EXPECT_EQ(code(world_.ask(OpenSession{.origin = engine_, .layout = layout})),
            ErrorCode::kLayoutRejected);
}

TEST_F(LedgerTest, seal_beyond_the_grant_changes_nothing) {
  const SessionId session = world_.open(engine_, Mode::kExact);
  ASSERT_TRUE(world_.fill(engine_, session, 1, 7, 0).ok());
  const Seal beyond{.origin = engine_,
                    .session = session,
                    .first_page = 1,
                    .pages = 1,
                    .tokens = std::vector<TokenId>(16, 1)};
  EXPECT_EQ(code(world_.ask(beyond)), ErrorCode::kOutOfRange);
  EXPECT_EQ(report_session(world_.ledger(), session)->pages, 1u);
}

TEST_F(LedgerTest, masses_that_are_no_masses_never_reach_a_score) {
  const SessionId session = world_.open(engine_, Mode::kLossy);
  ASSERT_TRUE(world_.fill(engine_, session, 2, 7, 0).ok());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [sink, mass] : {std::pair{nan, 0.5}, {0.5, nan}, {-0.5, 1.5}, {0.1, 0.1}}) {
    const Observe bad{.origin = engine_,
                      .session = session,
                      .step = 1,
                      .queries = 1,
                      .sink = sink,
                      .masses = {{0, mass}}};
    EXPECT_EQ(code(world_.ask(bad)), ErrorCode::kInvalidArgument);
  }
  const Observe twice{.origin = engine_,
                      .session = session,
                      .step = 1,
                      .queries = 1,
                      .masses = {{0, 0.5}, {0, 0.5}}};
  EXPECT_EQ(code(world_.ask(twice)), ErrorCode::kInvalidArgument);
  const Observe missing{
      .origin = engine_, .session = session, .step = 1, .queries = 1, .masses = {{9, 1.0}}};
  EXPECT_EQ(code(world_.ask(missing)), ErrorCode::kUnknownPage);
  const std::vector<PageReport> pages = *report_pages(world_.ledger(), session);
  for (const PageReport& page : pages) {
    EXPECT_TRUE(std::isfinite(page.score));
  }
}

TEST_F(LedgerTest, running_exact_session_is_never_robbed) {
  const SessionId session = world_.open(engine_, Mode::kExact);
  ASSERT_TRUE(world_.fill(engine_, session, 3, 7, 0).ok());
  EXPECT_EQ(code(world_.ask(EvictPages{.origin = engine_, .session = session, .pages = {0}})),
            ErrorCode::kBusy);
  EXPECT_EQ(code(world_.ask(Pressure{.origin = engine_, .pages = 2})),
            ErrorCode::kResourceExhausted);
  EXPECT_TRUE(world_.copies().empty());
}

TEST_F(LedgerTest, slot_is_free_only_after_acknowledgement_and_copy) {
  const SessionId session = world_.open(engine_, Mode::kLossy);
  ASSERT_TRUE(world_.fill(engine_, session, 4, 7, 0).ok());
  const auto waits = world_.ask(Pressure{.origin = engine_, .pages = 1});
  EXPECT_FALSE(waits.has_value());
  const RequestId pressure = world_.last_request();
  world_.ask(GaveUp{.origin = engine_, .session = session, .pages = {0}});
  ASSERT_EQ(world_.copies().size(), 1u);
  EXPECT_EQ(report_status(world_.ledger()).slots[0], 0u);
  const Effects done = world_.step(CopyDone{.copy = world_.copies().front().copy});
  EXPECT_TRUE(LedgerWorld::reply_in(done, pressure).has_value());
  EXPECT_EQ(report_status(world_.ledger()).slots[0], 1u);
}

TEST_F(LedgerTest, acknowledgement_of_an_older_generation_is_void) {
  const SessionId session = world_.open(engine_, Mode::kLossy);
  ASSERT_TRUE(world_.fill(engine_, session, 1, 7, 0).ok());
  world_.ask(EvictPages{.origin = engine_, .session = session, .pages = {0}});
  world_.ask(GaveUp{.origin = engine_, .session = session, .pages = {0}});
  world_.finish_copies();
  world_.ask(RestorePages{.origin = engine_, .session = session, .pages = {0}});
  world_.finish_copies();
  world_.ask(Resident{.origin = engine_, .session = session, .pages = {0}, .generations = {0}});
  EXPECT_EQ(report_pages(world_.ledger(), session)->front().view.state, PageState::kRestoring);
}

TEST_F(LedgerTest, changed_bytes_never_come_back) {
  const SessionId session = world_.open(engine_, Mode::kLossy);
  ASSERT_TRUE(world_.fill(engine_, session, 1, 7, 0).ok());
  world_.ask(EvictPages{.origin = engine_, .session = session, .pages = {0}});
  world_.ask(GaveUp{.origin = engine_, .session = session, .pages = {0}});
  world_.finish_copies();
  world_.ask(RestorePages{.origin = engine_, .session = session, .pages = {0}});
  const RequestId restore = world_.last_request();
  ASSERT_EQ(world_.copies().size(), 1u);
  const Effects done = world_.step(
      CopyDone{.copy = world_.copies().front().copy, .checksum = {.low = 1, .high = 2}});
  EXPECT_EQ(code(LedgerWorld::reply_in(done, restore)), ErrorCode::kDataLoss);
  EXPECT_EQ(LedgerWorld::notices<LostNotice>(done).size(), 1u);
  EXPECT_EQ(report_pages(world_.ledger(), session)->front().view.state, PageState::kDropped);
}

TEST_F(LedgerTest, claim_of_exactness_with_a_hole_is_refused) {
  const SessionId session = world_.open(engine_, Mode::kLossy);
  ASSERT_TRUE(world_.fill(engine_, session, 2, 7, 0).ok());
  world_.ask(EvictPages{.origin = engine_, .session = session, .pages = {0}});
  world_.ask(GaveUp{.origin = engine_, .session = session, .pages = {0}});
  world_.finish_copies();
  world_.ask(Extend{.origin = engine_, .session = session, .pages = 1});
  Seal lie{.origin = engine_,
           .session = session,
           .first_page = 2,
           .pages = 1,
           .tokens = std::vector<TokenId>(16, 1),
           .claim = Seal::Claim::kExact};
  EXPECT_EQ(code(world_.ask(lie)), ErrorCode::kInvalidArgument);
  lie.claim = Seal::Claim::kHoles;
  EXPECT_TRUE(world_.ask(lie)->status.ok());
  EXPECT_EQ(report_pages(world_.ledger(), session)->back().view.exactness,
            PageView::Exactness::kApproximate);
}

TEST_F(LedgerTest, budget_below_the_minimum_changes_nothing) {
  const SessionId session = world_.open(engine_, Mode::kLossy);
  ASSERT_TRUE(world_.fill(engine_, session, 3, 7, 0).ok());
  ASSERT_TRUE(world_.ask(Pin{.origin = engine_, .session = session, .first_page = 0, .pages = 2})
                  ->status.ok());
  EXPECT_EQ(code(world_.ask(SetBudget{.origin = engine_, .session = session, .budget_pages = 2})),
            ErrorCode::kBudgetTooSmall);
  EXPECT_EQ(report_session(world_.ledger(), session)->budget_pages, 0u);
}

TEST_F(LedgerTest, one_request_is_answered_once) {
  const SessionId session = world_.open(engine_, Mode::kExact);
  ASSERT_TRUE(world_.fill(engine_, session, 4, 7, 0).ok());
  world_.ask(Park{.origin = engine_, .session = session});
  const SessionId other = world_.open(engine_, Mode::kExact);
  EXPECT_FALSE(world_.ask(Extend{.origin = engine_, .session = other, .pages = 1}).has_value());
  const RequestId extend = world_.last_request();
  Effects late = world_.step(Tick{});
  world_.advance(Duration::from_seconds(6));  // limits.request_ms has passed: answered by the tick
  late = world_.step(GaveUp{.origin = engine_, .session = session, .pages = {0, 1, 2, 3}});
  EXPECT_FALSE(LedgerWorld::reply_in(late, extend).has_value());
}

TEST_F(LedgerTest, expired_lease_cannot_be_released) {
  EXPECT_EQ(code(world_.ask(Release{.origin = engine_, .lease = LeaseId{77}})),
            ErrorCode::kLeaseExpired);
}

TEST_F(LedgerTest, page_that_is_not_sealed_is_not_evicted) {
  const SessionId session = world_.open(engine_, Mode::kLossy);
  world_.ask(Extend{.origin = engine_, .session = session, .pages = 1});
  EXPECT_EQ(code(world_.ask(EvictPages{.origin = engine_, .session = session, .pages = {0}})),
            ErrorCode::kNotSealed);
}

TEST_F(LedgerTest, dead_engine_leaves_its_sealed_pages_and_nothing_else) {
  const SessionId session = world_.open(engine_, Mode::kExact);
  ASSERT_TRUE(world_.fill(engine_, session, 2, 7, 0).ok());
  world_.ask(Extend{.origin = engine_, .session = session, .pages = 1});
  world_.step(Disconnected{engine_.engine});
  EXPECT_EQ(report_status(world_.ledger()).slots[0], 1u);
  world_.step(EngineGone{engine_.engine});
  EXPECT_EQ(report_status(world_.ledger()).slots[0], 2u);
  EXPECT_EQ(report_session(world_.ledger(), session)->state, SessionState::kOrphaned);
}

}  // namespace
}  // namespace memdecay::ledger
