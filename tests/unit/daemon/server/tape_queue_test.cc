// The queue between the reactor and a recording's writer: bounded, and honest about what it lost.
#include "daemon/server/tape_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace memdecay::server {
namespace {

std::vector<trace::Event> steps(uint64_t from, uint64_t count) {
  std::vector<trace::Event> events;
  for (uint64_t i = 0; i < count; ++i) {
    events.push_back({.at_ms = from + i, .session = 1, .what = trace::Stepped{.step = from + i}});
  }
  return events;
}

uint64_t lost_in(const trace::Event& event) {
  const auto* lost = std::get_if<trace::Lost>(&event.what);
  return lost == nullptr ? 0 : lost->events;
}

TEST(tape_queue, gives_events_in_order_and_once) {
  base::Wake wake;
  TapeQueue queue(1 << 20, wake);
  auto events = steps(1, 3);
  queue.put(events);
  const auto taken = queue.take();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[2].at_ms, 3u);
  EXPECT_TRUE(queue.take().empty());
  EXPECT_EQ(queue.lost(), 0u);
}

TEST(tape_queue, what_does_not_fit_is_counted_where_it_is_missing) {
  base::Wake wake;
  TapeQueue queue(10 * sizeof(trace::Event), wake);
  auto events = steps(1, 13);
  queue.put(events);
  EXPECT_EQ(queue.lost(), 3u);
  auto taken = queue.take();
  ASSERT_EQ(taken.size(), 11u);
  EXPECT_EQ(lost_in(taken[10]), 3u) << "at the end of what fitted";
  EXPECT_EQ(taken[10].at_ms, 13u);
  EXPECT_EQ(taken[10].session, 0u);

  auto more = steps(20, 10);
  queue.put(more);
  auto late = steps(40, 2);
  queue.put(late);
  EXPECT_EQ(queue.lost(), 5u);
  taken = queue.take();
  ASSERT_EQ(taken.size(), 11u);
  EXPECT_EQ(lost_in(taken[10]), 2u) << "only those since the last one";
  auto last = steps(50, 1);
  queue.put(last);
  EXPECT_EQ(queue.take().size(), 1u) << "told already";
}

TEST(tape_queue, lists_count_as_what_they_hold) {
  base::Wake wake;
  TapeQueue queue(4096, wake);
  std::vector<trace::Event> events(1);
  events[0].what = trace::Observed{.masses = std::vector<trace::PageMass>(1000)};
  queue.put(events);
  EXPECT_EQ(queue.lost(), 1u);
}

TEST(tape_queue, rings_once_it_is_half_full) {
  base::Wake wake;
  TapeQueue queue(10 * sizeof(trace::Event), wake);
  auto events = steps(1, 5);
  queue.put(events);
  wake.wait();  // for ever, unless it was rung
}

}  // namespace
}  // namespace memdecay::server
