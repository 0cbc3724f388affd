// Timelines: waking across processes, deadlines, and refusing pages that could vanish.
#include "cuda/timeline.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "proto/contract/error.h"

namespace memdecay::cuda {
namespace {

constexpr Duration kLong = Duration::from_seconds(60);

TEST(Timeline, starts_at_zero_and_a_passed_fence_needs_no_wait) {
  const Timeline timeline = *Timeline::create();
  EXPECT_TRUE(*timeline.poll(0, 0));
  EXPECT_FALSE(*timeline.poll(0, 1));
  timeline.signal(0, 3);
  EXPECT_TRUE(*timeline.poll(0, 3));
  EXPECT_TRUE(timeline.wait(0, 2, {}).ok());
}

TEST(Timeline, a_wait_ends_at_its_deadline) {
  const Timeline timeline = *Timeline::create();
  EXPECT_EQ(error_code(timeline.wait(0, 1, {})), ErrorCode::kDeadline);
  EXPECT_EQ(error_code(timeline.wait(0, 1, Duration::from_milliseconds(3))), ErrorCode::kDeadline);
}

TEST(Timeline, words_outside_the_page_are_errors) {
  const Timeline timeline = *Timeline::create();
  EXPECT_EQ(error_code(timeline.poll(kTimelineWords, 0).status()), ErrorCode::kOutOfRange);
  EXPECT_EQ(error_code(timeline.wait(kTimelineWords, 0, kLong)), ErrorCode::kOutOfRange);
}

TEST(Timeline, a_signal_wakes_a_waiter_through_another_mapping) {
  const Timeline daemon = *Timeline::create();
  const Timeline client = *Timeline::adopt(*daemon.share());
  std::thread producer([&] {
    for (uint64_t value = 1; value <= 1000; ++value) client.signal(7, value);
  });
  EXPECT_TRUE(daemon.wait(7, 1000, kLong).ok());
  producer.join();
  EXPECT_EQ(daemon.view().load(7), 1000u);
}

TEST(Timeline, a_producer_that_cannot_wake_is_noticed) {
  const Timeline daemon = *Timeline::create();
  const Timeline client = *Timeline::adopt(*daemon.share());
  std::thread producer([&] { client.view().store(7, 1); });
  EXPECT_TRUE(daemon.wait(7, 1, kLong).ok());
  producer.join();
}

TEST(Timeline, wakes_across_processes) {
  const Timeline daemon = *Timeline::create();
  Fd descriptor = *daemon.share();
  const pid_t child = fork();
  if (child == 0) {
    // Not inherited: the child maps the descriptor like any client.
    const auto client = Timeline::adopt(std::move(descriptor));
    if (!client.ok()) _exit(1);
    client->signal(0, 41);
    _exit(client->wait(kEngineWords, 42, kLong).ok() ? 0 : 2);
  }
  EXPECT_TRUE(daemon.wait(0, 41, kLong).ok());
  daemon.signal(kEngineWords, 42);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Timeline, foreign_descriptors_are_refused) {
  EXPECT_EQ(error_code(Timeline::adopt(Fd()).status()), ErrorCode::kInvalidArgument);
  Fd unsealed(memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kTimelineBytes), 0);
  EXPECT_EQ(error_code(Timeline::adopt(std::move(unsealed)).status()), ErrorCode::kInvalidArgument);
  Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(error_code(Timeline::adopt(std::move(null)).status()), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace memdecay::cuda
