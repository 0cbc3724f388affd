// Pages of one engine: written, sealed, given up, brought back; refusals that say what to do.
#include <gtest/gtest.h>

#include <string>

#include "tests/integration/client/daemon_process.h"

namespace memdecay::integration {
namespace {

TEST(Pages, engine_writes_seals_and_reads_its_pages) {
  DaemonProcess daemon({});
  const engine::Client client = connect(daemon);
  const engine::Session session = open(client, "a");
  ASSERT_EQ(session.extend(2), MEMDECAY_OK) << memdecay_last_error()->message;
  for (const memdecay_page& page : session.pages()) {
    EXPECT_EQ(page.state, MEMDECAY_PAGE_GRANTED);
    fill(page, page.page * kTokens);
  }
  ASSERT_EQ(session.seal(0, tokens(0, 2)), MEMDECAY_OK) << memdecay_last_error()->message;
  for (const memdecay_page& page : session.pages()) {
    EXPECT_EQ(page.state, MEMDECAY_PAGE_MAPPED);
    EXPECT_TRUE(holds(page, page.page * kTokens));
    EXPECT_EQ(page.approximate, 0);
  }
  EXPECT_EQ(session.info().position, 2 * kTokens);
}

TEST(Pages, sealed_page_cannot_be_written_by_its_own_writer) {
  DaemonProcess daemon({});
  const engine::Client client = connect(daemon);
  const engine::Session session = open(client, "a");
  ASSERT_EQ(session.extend(1), MEMDECAY_OK);
  void* write = session.pages()[0].write;
  EXPECT_TRUE(can_write(write));
  fill(session.pages()[0], 7);
  ASSERT_EQ(session.seal(0, tokens(7, 1)), MEMDECAY_OK);
  EXPECT_EQ(session.pages()[0].write, nullptr);
  EXPECT_FALSE(can_write(write));
  EXPECT_FALSE(can_write(session.pages()[0].read));
}

TEST(Pages, parked_session_leaves_the_device_and_comes_back_bit_for_bit) {
  DaemonProcess daemon({"device.pages=4", "sinks=0", "recent=0"});
  const engine::Client client = connect(daemon);
  const engine::Session a = open(client, "a");
  ASSERT_TRUE(grow(a, 3, 100)) << memdecay_last_error()->message;
  ASSERT_EQ(a.park(MEMDECAY_WAITING_TOOL), MEMDECAY_OK);
  engine::Session b = open(client, "b");
  b.at_end(engine::AtEnd::kForget);
  ASSERT_TRUE(grow(b, 4, 900)) << memdecay_last_error()->message;
  uint32_t holes = 0;
  for (const memdecay_page& page : a.pages()) holes += page.read == nullptr ? 1 : 0;
  EXPECT_EQ(holes, 3u);
  ASSERT_EQ(b.close(), MEMDECAY_OK) << memdecay_last_error()->message;
  ASSERT_EQ(a.unpark(10000), MEMDECAY_OK) << memdecay_last_error()->message;
  for (const memdecay_page& page : a.pages()) {
    EXPECT_TRUE(holds(page, 100 + page.page * kTokens)) << "page " << page.page;
  }
}

TEST(Pages, recycled_slot_is_handed_out_zeroed) {
  DaemonProcess daemon({"device.pages=1", "host.pages=0"});
  const engine::Client client = connect(daemon);
  engine::Session a = open(client, "a");
  ASSERT_TRUE(grow(a, 1, 100)) << memdecay_last_error()->message;
  a.at_end(engine::AtEnd::kForget);
  ASSERT_EQ(a.close(), MEMDECAY_OK);
  const engine::Session b = open(client, "b");
  ASSERT_EQ(b.extend(1), MEMDECAY_OK) << memdecay_last_error()->message;
  const auto* bytes = static_cast<const char*>(b.pages()[0].read);
  for (uint32_t i = 0; i < kPage; ++i) ASSERT_EQ(bytes[i], 0) << i;
}

TEST(Pages, grants_ahead_are_taken_without_asking) {
  DaemonProcess daemon({"device.slab_pages=8"});
  memdecay_options options = options_for(daemon);
  options.grants_ahead = 4;
  const engine::Client client = connect(options);
  const engine::Session session = open(client, "a");
  ASSERT_EQ(session.extend(1), MEMDECAY_OK);
  std::string granted;
  for (uint32_t page = 0; page < 5; ++page) {
    const memdecay_event grant = wait_for(client, MEMDECAY_EVENT_GRANT);
    granted += std::to_string(grant.slab) + ":" + std::to_string(grant.slot) + " ";
  }
  // With the daemon stopped dead, only the cache can give.
  daemon.kill_hard();
  EXPECT_EQ(session.extend(4), MEMDECAY_OK) << memdecay_last_error()->message << granted;
  EXPECT_NE(session.pages()[4].write, nullptr);
}

TEST(Pages, truncated_pages_are_granted_again) {
  DaemonProcess daemon({"device.pages=3", "host.pages=0"});
  const engine::Client client = connect(daemon);
  const engine::Session session = open(client, "a");
  ASSERT_TRUE(grow(session, 3, 100)) << memdecay_last_error()->message;
  ASSERT_EQ(memdecay_truncate(session.get(), kTokens + 5), MEMDECAY_OK)
      << memdecay_last_error()->message;
  EXPECT_EQ(session.pages().size(), 1u);
  ASSERT_TRUE(grow(session, 2, 500)) << memdecay_last_error()->message;
  EXPECT_TRUE(holds(session.pages()[0], 100));
  EXPECT_TRUE(holds(session.pages()[1], 500));
}

TEST(Refusals, seal_beyond_the_grant_is_out_of_range_and_says_so) {
  DaemonProcess daemon({});
  const engine::Client client = connect(daemon);
  const engine::Session session = open(client, "a");
  ASSERT_EQ(session.extend(1), MEMDECAY_OK);
  EXPECT_EQ(session.seal(0, tokens(0, 2)), MEMDECAY_OUT_OF_RANGE) << memdecay_last_error()->message;
  EXPECT_NE(std::string(memdecay_last_error()->todo), "");
  EXPECT_NE(session.pages()[0].write, nullptr) << "nothing was sealed, so it is still ours";
}

TEST(Refusals, full_pool_answers_resource_exhausted_and_keeps_nothing) {
  DaemonProcess daemon({"device.pages=2", "host.pages=0", "limits.request_ms=50"});
  const engine::Client client = connect(daemon);
  const engine::Session session = open(client, "a");
  EXPECT_EQ(session.extend(3), MEMDECAY_RESOURCE_EXHAUSTED) << memdecay_last_error()->message;
  EXPECT_TRUE(session.pages().empty());
  EXPECT_EQ(session.extend(2), MEMDECAY_OK) << memdecay_last_error()->message;
}

TEST(Refusals, layout_that_leaves_something_open_is_rejected_by_the_fields_name) {
  DaemonProcess daemon({});
  const engine::Client client = connect(daemon);
  memdecay_layout open_layout = layout();
  open_layout.tokenizer_fingerprint = "auto";
  const memdecay_open_options options = MEMDECAY_OPEN_INIT;
  EXPECT_FALSE(client.open(open_layout, options));
  EXPECT_EQ(memdecay_last_error()->code, MEMDECAY_LAYOUT_REJECTED);
  EXPECT_NE(std::string(memdecay_last_error()->asked).find("tokenizer_fingerprint"),
            std::string::npos);
}

TEST(Refusals, another_major_version_is_refused_in_words) {
  DaemonProcess daemon({});
  memdecay_options options = options_for(daemon);
  options.protocol_major = 9;
  EXPECT_FALSE(engine::Client::connect(options));
  EXPECT_EQ(memdecay_last_error()->code, MEMDECAY_VERSION_MISMATCH)
      << memdecay_last_error()->message;
}

TEST(Refusals, no_daemon_is_unavailable_and_says_what_to_do) {
  memdecay_options options = MEMDECAY_OPTIONS_INIT;
  options.socket_dir = "/nonexistent";
  options.timeout_ms = 500;
  EXPECT_FALSE(engine::Client::connect(options));
  EXPECT_EQ(memdecay_last_error()->code, MEMDECAY_UNAVAILABLE);
  EXPECT_NE(std::string(memdecay_last_error()->todo), "");
}

TEST(Refusals, seal_that_is_not_waited_for_is_refused_by_an_event) {
  DaemonProcess daemon({});
  const engine::Client client = connect(daemon);
  const engine::Session session = open(client, "a");
  ASSERT_EQ(session.extend(1), MEMDECAY_OK);
  const std::vector<uint32_t> ids = tokens(0, 2);
  memdecay_seal_info seal = MEMDECAY_SEAL_INIT;
  seal.pages = 2;
  seal.tokens = ids.data();
  seal.token_count = 2 * kTokens;
  seal.no_wait = 1;
  EXPECT_EQ(memdecay_seal(session.get(), &seal), MEMDECAY_OK);
  EXPECT_EQ(wait_for(client, MEMDECAY_EVENT_REFUSED).code, MEMDECAY_OUT_OF_RANGE);
}

}  // namespace
}  // namespace memdecay::integration
