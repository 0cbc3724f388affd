// Two engines: the same slots in two processes' tables, leases, forks, worker members.
#include <gtest/gtest.h>

#include "tests/integration/client/daemon_process.h"

namespace memdecay::integration {
namespace {

memdecay_lookup_result look_up(const engine::Client& client, const std::vector<uint32_t>& ids) {
  memdecay_lookup_result result{};
  const memdecay_layout known = layout();
  EXPECT_EQ(memdecay_lookup(client.get(), &known, ids.data(), static_cast<uint32_t>(ids.size()),
                            nullptr, 0, &result),
            MEMDECAY_OK)
      << memdecay_last_error()->message;
  return result;
}

TEST(Sharing, second_engine_maps_the_same_slots_and_cannot_write_them) {
  DaemonProcess daemon({});
  const engine::Client first = connect(daemon);
  const engine::Session a = open(first, "a");
  ASSERT_TRUE(grow(a, 3, 100)) << memdecay_last_error()->message;
  const engine::Client second = connect(daemon);
  EXPECT_EQ(look_up(second, tokens(100, 4)).pages, 3u);
  const engine::Session b = open(second, "b");
  const std::vector<uint32_t> ids = tokens(100, 3);
  memdecay_lease lease{};
  const memdecay_layout known = layout();
  ASSERT_EQ(
      memdecay_acquire(second.get(), &known, b.get(), ids.data(), 3 * kTokens, nullptr, 0, &lease),
      MEMDECAY_OK)
      << memdecay_last_error()->message;
  EXPECT_EQ(lease.pages, 3u);
  ASSERT_EQ(memdecay_wait_ready(b.get(), 5000), MEMDECAY_OK) << memdecay_last_error()->message;
  ASSERT_EQ(b.pages().size(), 3u);
  for (uint32_t page = 0; page < 3; ++page) {
    EXPECT_EQ(b.pages()[page].slab, a.pages()[page].slab);
    EXPECT_EQ(b.pages()[page].slot, a.pages()[page].slot);
    EXPECT_TRUE(holds(b.pages()[page], 100 + page * kTokens));
    EXPECT_FALSE(can_write(b.pages()[page].read));
  }
  EXPECT_EQ(memdecay_release(second.get(), lease.id), MEMDECAY_OK)
      << memdecay_last_error()->message;
  // It goes on with a page of its own, in a slab of its own.
  ASSERT_TRUE(grow(b, 1, 700)) << memdecay_last_error()->message;
  EXPECT_NE(b.pages()[3].slab, a.pages()[0].slab);
}

TEST(Sharing, fork_reads_the_parents_slots) {
  DaemonProcess daemon({});
  const engine::Client client = connect(daemon);
  const engine::Session parent = open(client, "parent");
  ASSERT_TRUE(grow(parent, 2, 100)) << memdecay_last_error()->message;
  const engine::Session child = parent.fork("child");
  ASSERT_TRUE(child) << memdecay_last_error()->message;
  ASSERT_EQ(child.pages().size(), 2u);
  EXPECT_EQ(child.pages()[1].slot, parent.pages()[1].slot);
  EXPECT_TRUE(holds(child.pages()[1], 100 + kTokens));
  ASSERT_TRUE(grow(child, 1, 300)) << memdecay_last_error()->message;
  EXPECT_EQ(parent.pages().size(), 2u);
}

TEST(Sharing, worker_member_finds_the_schedulers_slots) {
  DaemonProcess daemon({});
  const engine::Client scheduler = connect(daemon);
  const engine::Session session = open(scheduler, "a");
  ASSERT_TRUE(grow(session, 1, 100)) << memdecay_last_error()->message;
  const memdecay_identity identity = memdecay_get_identity(scheduler.get());
  memdecay_options options = options_for(daemon);
  options.role = MEMDECAY_WORKER;
  options.join = &identity;
  const engine::Client worker = connect(options);
  ASSERT_TRUE(worker);
  EXPECT_EQ(memdecay_get_identity(worker.get()).engine, identity.engine);
  EXPECT_NE(memdecay_get_identity(worker.get()).member, identity.member);
  const memdecay_page page = session.pages()[0];
  const void* read = nullptr;
  // The descriptor comes on its own socket: the worker's first fence wait gives it time.
  memdecay_code code = MEMDECAY_NOT_FOUND;
  for (int i = 0; i < 100 && code != MEMDECAY_OK; ++i) {
    code = memdecay_slot_address(worker.get(), page.slab, page.slot, &read, nullptr);
    memdecay_event none;
    if (code != MEMDECAY_OK) memdecay_next_event(worker.get(), 20, &none);
  }
  ASSERT_EQ(code, MEMDECAY_OK) << memdecay_last_error()->message;
  memdecay_page seen = page;
  seen.read = read;
  EXPECT_TRUE(holds(seen, 100));
  const memdecay_layout known = layout();
  memdecay_session* none = nullptr;
  EXPECT_EQ(memdecay_open(worker.get(), &known, nullptr, &none), MEMDECAY_UNSUPPORTED);
}

}  // namespace
}  // namespace memdecay::integration
