// kill -9 on either side, sockets that close while the process lives, messages sent again.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/integration/client/daemon_process.h"

namespace memdecay::integration {
namespace {

TEST(Crash, pages_stay_readable_and_calls_are_unavailable_while_the_daemon_is_gone) {
  DaemonProcess daemon({});
  const engine::Client client = connect(daemon);
  const engine::Session session = open(client, "a");
  ASSERT_TRUE(grow(session, 2, 100)) << memdecay_last_error()->message;
  daemon.kill_hard();
  wait_for(client, MEMDECAY_EVENT_DISCONNECTED);
  EXPECT_EQ(session.extend(1), MEMDECAY_UNAVAILABLE) << memdecay_last_error()->message;
  EXPECT_GT(memdecay_last_error()->retry_after_ms, 0);
  EXPECT_TRUE(holds(session.pages()[1], 100 + kTokens));
  EXPECT_EQ(step(session, 1), MEMDECAY_OK);
}

TEST(Crash, restarted_daemon_gets_a_new_engine_and_old_pages_stay_readable_until_closed) {
  DaemonProcess daemon({});
  const engine::Client client = connect(daemon);
  engine::Session old_session = open(client, "a");
  ASSERT_TRUE(grow(old_session, 2, 100)) << memdecay_last_error()->message;
  daemon.kill_hard();
  daemon.start();
  wait_for(client, MEMDECAY_EVENT_RESET);
  wait_for(client, MEMDECAY_EVENT_CONNECTED);
  EXPECT_EQ(old_session.info().orphaned, 1);
  EXPECT_EQ(old_session.extend(1), MEMDECAY_STALE_EPOCH) << memdecay_last_error()->message;
  const engine::Session fresh = open(client, "a");
  ASSERT_TRUE(grow(fresh, 2, 900)) << memdecay_last_error()->message;
  EXPECT_TRUE(holds(old_session.pages()[0], 100));
  EXPECT_TRUE(holds(fresh.pages()[0], 900));
  EXPECT_EQ(old_session.close(), MEMDECAY_OK);
  EXPECT_TRUE(holds(fresh.pages()[1], 900 + kTokens));
}

TEST(Crash, detached_engine_comes_back_to_its_sessions_and_its_seals_are_not_lost) {
  DaemonProcess daemon({});
  const engine::Client client = connect(daemon);
  const engine::Session session = open(client, "a");
  ASSERT_EQ(session.extend(2), MEMDECAY_OK);
  for (const memdecay_page& page : session.pages()) fill(page, 100 + page.page * kTokens);
  const uint64_t engine = memdecay_get_identity(client.get()).engine;
  ASSERT_EQ(memdecay_detach(client.get()), MEMDECAY_OK);
  EXPECT_EQ(session.extend(1), MEMDECAY_UNAVAILABLE);
  const std::vector<uint32_t> ids = tokens(100, 2);
  memdecay_seal_info seal = MEMDECAY_SEAL_INIT;
  seal.pages = 2;
  seal.tokens = ids.data();
  seal.token_count = 2 * kTokens;
  seal.no_wait = 1;  // waits in the outbox
  ASSERT_EQ(memdecay_seal(session.get(), &seal), MEMDECAY_OK);
  ASSERT_EQ(memdecay_reattach(client.get(), 10000), MEMDECAY_OK) << memdecay_last_error()->message;
  EXPECT_EQ(memdecay_get_identity(client.get()).engine, engine);
  ASSERT_TRUE(grow(session, 1, 700)) << memdecay_last_error()->message;
  EXPECT_EQ(session.pages().size(), 3u);
  EXPECT_EQ(session.info().position, 3 * kTokens);
  EXPECT_TRUE(holds(session.pages()[0], 100));
}

TEST(Crash, detaching_again_and_again_applies_every_message_once) {
  DaemonProcess daemon({"device.pages=64"});
  const engine::Client client = connect(daemon);
  const engine::Session session = open(client, "a");
  for (uint32_t round = 0; round < 20; ++round) {
    ASSERT_EQ(session.extend(1), MEMDECAY_OK) << memdecay_last_error()->message;
    fill(session.pages()[round], 100 + round * kTokens);
    const std::vector<uint32_t> ids = tokens(100 + round * kTokens, 1);
    memdecay_seal_info seal = MEMDECAY_SEAL_INIT;
    seal.first_page = round;
    seal.pages = 1;
    seal.tokens = ids.data();
    seal.token_count = kTokens;
    seal.no_wait = 1;
    ASSERT_EQ(memdecay_seal(session.get(), &seal), MEMDECAY_OK);
    ASSERT_EQ(memdecay_detach(client.get()), MEMDECAY_OK);  // with the answer still on its way
    ASSERT_EQ(memdecay_reattach(client.get(), 10000), MEMDECAY_OK);
  }
  ASSERT_EQ(memdecay_set_budget(session.get(), 30), MEMDECAY_OK);
  EXPECT_EQ(session.info().position, 20 * kTokens);
  memdecay_event event{};
  while (memdecay_next_event(client.get(), -1, &event) == MEMDECAY_OK) {
    EXPECT_NE(event.kind, MEMDECAY_EVENT_REFUSED) << memdecay_code_name(event.code);
  }
}

// The engine in another process, until it says that it is ready.
pid_t start_engine(const DaemonProcess& daemon) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  std::string folder = daemon.folder();
  char program[] = KILLED_ENGINE;
  char* argv[] = {program, folder.data(), nullptr};
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, program, &actions, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  char byte = 0;
  const bool ready = failed == 0 && ::read(ends[0], &byte, 1) == 1;
  ::close(ends[0]);
  return ready ? pid : -1;
}

TEST(Crash, session_of_a_killed_engine_is_resumed_with_its_tokens_and_bytes) {
  DaemonProcess daemon({});
  const pid_t child = start_engine(daemon);
  ASSERT_GT(child, 0);
  const engine::Client client = connect(daemon);
  EXPECT_FALSE(client.resume(layout(), std::string("killed")));
  EXPECT_EQ(memdecay_last_error()->code, MEMDECAY_BUSY) << memdecay_last_error()->message;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  engine::Session session;
  for (int i = 0; i < 200 && !session; ++i) {
    session = client.resume(layout(), std::string("killed"));
    memdecay_event none;
    if (!session) memdecay_next_event(client.get(), 20, &none);
  }
  ASSERT_TRUE(session) << memdecay_last_error()->message;
  ASSERT_EQ(memdecay_wait_ready(session.get(), 5000), MEMDECAY_OK)
      << memdecay_last_error()->message;
  EXPECT_EQ(session.info().position, 2 * kTokens);
  EXPECT_EQ(session.info().token_count, 2 * kTokens);
  EXPECT_EQ(session.info().tokens[17], 117u);
  ASSERT_EQ(session.pages().size(), 2u);
  for (uint32_t page = 0; page < 2; ++page) {
    EXPECT_TRUE(holds(session.pages()[page], 100 + page * kTokens));
  }
  ASSERT_TRUE(grow(session, 1, 500)) << memdecay_last_error()->message;
}

TEST(Crash, orderly_stop_tells_the_engines) {
  DaemonProcess daemon({});
  const engine::Client client = connect(daemon);
  const engine::Session session = open(client, "a");
  ASSERT_TRUE(grow(session, 1, 100)) << memdecay_last_error()->message;
  EXPECT_EQ(daemon.stop(), 0);
  wait_for(client, MEMDECAY_EVENT_SHUTDOWN);
  EXPECT_TRUE(holds(session.pages()[0], 100));
}

}  // namespace
}  // namespace memdecay::integration
