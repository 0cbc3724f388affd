// Steps: the table stands still inside one; pages leave and come at its end, with fences.
#include <gtest/gtest.h>

#include <string>

#include "tests/integration/client/daemon_process.h"

namespace memdecay::integration {
namespace {

TEST(Steps, asked_page_stays_readable_until_the_step_ends) {
  DaemonProcess daemon({"sinks=0", "recent=0"});
  const engine::Client client = connect(daemon);
  const engine::Session session = open_lossy(client, "a", 0);
  ASSERT_TRUE(grow(session, 4, 100)) << memdecay_last_error()->message;
  const uint32_t page = 1;
  ASSERT_EQ(memdecay_begin_step(session.get()), MEMDECAY_OK);
  ASSERT_EQ(memdecay_evict(session.get(), &page, 1), MEMDECAY_OK) << memdecay_last_error()->message;
  wait_for(client, MEMDECAY_EVENT_EVICT);
  EXPECT_TRUE(holds(session.pages()[1], 100 + kTokens));
  memdecay_step done = MEMDECAY_STEP_INIT;
  done.step = 1;
  ASSERT_EQ(memdecay_end_step(session.get(), &done), MEMDECAY_OK);
  EXPECT_EQ(session.pages()[1].read, nullptr);
  EXPECT_EQ(wait_for(client, MEMDECAY_EVENT_RELEASED).page, 1u);
  EXPECT_EQ(session.pages()[1].state, MEMDECAY_PAGE_HOLE);
}

TEST(Steps, idle_engine_gives_up_at_once_and_restore_brings_the_same_bytes) {
  DaemonProcess daemon({"sinks=0", "recent=0"});
  const engine::Client client = connect(daemon);
  const engine::Session session = open_lossy(client, "a", 0);
  ASSERT_TRUE(grow(session, 4, 100)) << memdecay_last_error()->message;
  const uint32_t pages[] = {0, 2};
  ASSERT_EQ(memdecay_evict(session.get(), pages, 2), MEMDECAY_OK) << memdecay_last_error()->message;
  wait_for(client, MEMDECAY_EVENT_RELEASED);
  wait_for(client, MEMDECAY_EVENT_RELEASED);
  EXPECT_EQ(session.pages()[0].read, nullptr);
  memdecay_restore_result result{};
  ASSERT_EQ(memdecay_restore(session.get(), pages, 2, 10000, &result), MEMDECAY_OK)
      << memdecay_last_error()->message;
  EXPECT_EQ(result.resident, 2u);
  EXPECT_EQ(result.failed_count, 0u);
  for (const memdecay_page& page : session.pages()) {
    EXPECT_TRUE(holds(page, 100 + page.page * kTokens)) << "page " << page.page;
  }
}

TEST(Steps, slot_waits_for_the_fence_of_the_last_reader) {
  DaemonProcess daemon({"sinks=0", "recent=0"});
  const engine::Client client = connect(daemon);
  const engine::Session session = open_lossy(client, "a", 0);
  ASSERT_TRUE(grow(session, 4, 100)) << memdecay_last_error()->message;
  memdecay_step done = MEMDECAY_STEP_INIT;
  ASSERT_EQ(memdecay_fence_next(client.get(), 0, &done.fence), MEMDECAY_OK);
  const uint32_t page = 0;
  ASSERT_EQ(memdecay_begin_step(session.get()), MEMDECAY_OK);
  ASSERT_EQ(memdecay_evict(session.get(), &page, 1), MEMDECAY_OK);
  wait_for(client, MEMDECAY_EVENT_EVICT);
  ASSERT_EQ(memdecay_end_step(session.get(), &done), MEMDECAY_OK);
  // The answer to a later call shows that the daemon has seen the acknowledgement.
  ASSERT_EQ(memdecay_set_budget(session.get(), 8), MEMDECAY_OK);
  EXPECT_EQ(session.pages()[0].state, MEMDECAY_PAGE_GIVEN_UP);
  ASSERT_EQ(memdecay_fence_signal(client.get(), done.fence), MEMDECAY_OK);
  wait_for(client, MEMDECAY_EVENT_RELEASED);
  EXPECT_EQ(session.pages()[0].state, MEMDECAY_PAGE_HOLE);
}

TEST(Steps, manual_acknowledgement_holds_pages_until_it_is_given) {
  DaemonProcess daemon({"sinks=0", "recent=0"});
  memdecay_options options = options_for(daemon);
  options.manual_ack = 1;
  const engine::Client client = connect(options);
  const engine::Session session = open_lossy(client, "a", 0);
  ASSERT_TRUE(grow(session, 4, 100)) << memdecay_last_error()->message;
  const uint32_t page = 3;
  ASSERT_EQ(memdecay_evict(session.get(), &page, 1), MEMDECAY_OK);
  wait_for(client, MEMDECAY_EVENT_EVICT);
  EXPECT_EQ(session.pages()[3].state, MEMDECAY_PAGE_ASKED);
  EXPECT_TRUE(holds(session.pages()[3], 100 + 3 * kTokens));
  ASSERT_EQ(memdecay_acknowledge(client.get(), memdecay_fence MEMDECAY_NO_FENCE), MEMDECAY_OK);
  EXPECT_EQ(session.pages()[3].read, nullptr);
  wait_for(client, MEMDECAY_EVENT_RELEASED);
}

TEST(Steps, budget_holds_after_every_step_in_lockstep) {
  DaemonProcess daemon({"sinks=0", "recent=1", "policy.name=lru"});
  memdecay_options options = options_for(daemon);
  options.lockstep = 1;
  options.observe_every = 1;
  const engine::Client client = connect(options);
  const engine::Session session = open_lossy(client, "a", 4);
  for (uint32_t page = 0; page < 10; ++page) {
    ASSERT_TRUE(grow(session, 1, 100 + page * kTokens)) << memdecay_last_error()->message;
    ASSERT_EQ(step(session, page + 1), MEMDECAY_OK) << memdecay_last_error()->message;
    uint32_t resident = 0;
    for (const memdecay_page& known : session.pages()) resident += known.read != nullptr ? 1 : 0;
    EXPECT_LE(resident, 4u) << "after page " << page;
  }
}

TEST(Steps, masses_that_do_not_sum_to_one_are_refused) {
  DaemonProcess daemon({"sinks=0"});
  memdecay_options options = options_for(daemon);
  options.lockstep = 1;
  options.observe_every = 1;
  const engine::Client client = connect(options);
  const engine::Session session = open(client, "a");
  ASSERT_TRUE(grow(session, 2, 100)) << memdecay_last_error()->message;
  engine::Step bracket(session);
  EXPECT_TRUE(bracket.wants_masses());
  const memdecay_mass masses[] = {{0, 0.9}, {1, 0.9}};
  memdecay_step done = MEMDECAY_STEP_INIT;
  done.step = 1;
  done.queries = 1;
  done.masses = masses;
  done.mass_count = 2;
  EXPECT_EQ(bracket.end(done), MEMDECAY_INVALID_ARGUMENT) << memdecay_last_error()->message;
}

TEST(Steps, masses_are_wanted_every_kth_step_only) {
  DaemonProcess daemon({});
  memdecay_options options = options_for(daemon);
  options.observe_every = 3;
  const engine::Client client = connect(options);
  const engine::Session session = open(client, "a");
  std::string wanted;
  for (uint64_t i = 1; i <= 6; ++i) {
    engine::Step bracket(session);
    wanted += bracket.wants_masses() ? 'x' : '.';
    memdecay_step done = MEMDECAY_STEP_INIT;
    done.step = i;
    bracket.end(done);
  }
  EXPECT_EQ(wanted, "..x..x");
}

}  // namespace
}  // namespace memdecay::integration
