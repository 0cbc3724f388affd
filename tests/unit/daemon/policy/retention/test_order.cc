// The order of a tier and what it is made of besides: merging levels, taking in what was used long
// ago, ghosts and histories that change their size.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "daemon/policy/retention/ghosts.h"
#include "daemon/policy/retention/history.h"
#include "daemon/policy/retention/order.h"

namespace memdecay::retention {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

Place a_place(uint64_t name, int64_t at_s, int16_t rung = 0, uint32_t depth = 0) {
  return {.rung = rung, .at_ns = at_s * kSecond, .depth_descending = ~depth, .name = name};
}

std::vector<uint64_t> names(const Order& order, Duration h) {
  std::vector<uint64_t> shown;
  order.visit(h, [&](const Place& place) {
    shown.push_back(place.name);
    return Visit::kGoOn;
  });
  return shown;
}

TEST(Order, one_order_answers_for_every_h) {
  Order order;
  order.put(a_place(1, 0, 3 * kRungsABit));  // used eight times, long ago
  order.put(a_place(2, 100, 0));
  EXPECT_EQ(names(order, Duration::from_seconds(15)), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(names(order, Duration::from_seconds(960)), (std::vector<uint64_t>{2, 1}));
}

TEST(Order, class_comes_before_priority_and_priority_before_use) {
  Order order;
  Place dear = a_place(1, 0), important = a_place(2, 0), used = a_place(3, 900, 100);
  dear.klass = 1;
  important.priority = 5;
  for (const Place& place : {dear, important, used}) order.put(place);
  EXPECT_EQ(names(order, Duration::from_seconds(120)), (std::vector<uint64_t>{3, 2, 1}));
}

TEST(Order, inside_one_time_the_leaf_leaves_before_the_root_on_every_level) {
  Order order;
  for (uint32_t depth = 0; depth < 4; ++depth) order.put(a_place(10 + depth, 5, 0, depth));
  order.put(a_place(20, 6, -kRungsABit / 2, 9));  // 120 s by half a bit is a minute earlier
  EXPECT_EQ(names(order, Duration::from_seconds(2)), (std::vector<uint64_t>{20, 13, 12, 11, 10}));
}

TEST(Order, what_comes_in_late_stands_by_its_own_last_use) {
  Order order;
  for (uint64_t name = 1; name <= 100; ++name)
    order.put(a_place(name, 2 * static_cast<int64_t>(name)));
  order.put(a_place(500, 101));
  const auto shown = names(order, Duration::from_seconds(60));
  EXPECT_EQ(std::find(shown.begin(), shown.end(), 500) - shown.begin(), 50);
}

TEST(Order, a_visit_ends_when_it_is_told_and_changes_nothing) {
  Order order;
  for (uint64_t name = 1; name <= 5; ++name)
    order.put(a_place(name, 1, static_cast<int16_t>(name)));
  int seen = 0;
  order.visit(Duration::from_seconds(60),
              [&](const Place&) { return ++seen == 2 ? Visit::kEnough : Visit::kGoOn; });
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(order.size(), 5u);
  EXPECT_EQ(names(order, Duration::from_seconds(60)).size(), 5u);
}

TEST(Order, is_the_sorted_list_of_what_is_in_it) {
  std::mt19937_64 random(7);
  const auto below = [&](uint64_t n) { return random() % n; };
  Order order;
  std::vector<Place> in;
  for (int round = 0; round < 3000; ++round) {
    if (!in.empty() && below(3) == 0) {
      const size_t at = below(in.size());
      order.erase(in[at]);
      in.erase(in.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      Place place = a_place(static_cast<uint64_t>(round), static_cast<int64_t>(below(300)),
                            static_cast<int16_t>(static_cast<int>(below(40)) - 20),
                            static_cast<uint32_t>(below(5)));
      place.klass = static_cast<uint8_t>(below(3));
      place.priority = static_cast<int32_t>(below(2));
      order.put(place);
      in.push_back(place);
    }
    if (round % 50 != 0) continue;
    const Duration h = Duration::from_seconds(kHSeconds[below(kHSeconds.size())]);
    std::sort(in.begin(), in.end(),
              [h](const Place& a, const Place& b) { return leaves_before(a, b, h); });
    std::vector<uint64_t> sorted;
    for (const Place& place : in) sorted.push_back(place.name);
    ASSERT_EQ(names(order, h), sorted) << "round " << round;
  }
}

Use used(EntryKey key, int64_t second) {
  Use use;
  use.key = key;
  use.at = Instant{second * kSecond};
  use.chain = key;
  return use;
}

TEST(Ghosts, a_smaller_tier_is_reached_use_by_use_and_a_larger_one_fills) {
  RetentionOptions options;
  options.capacity = 4000;
  options.sample = 1;
  Ghosts ghosts(options);
  for (uint64_t i = 0; i < 6000; ++i) ghosts.use(used(i, 1), 0);
  EXPECT_EQ(ghosts.keys(), 7u * 4000);
  ghosts.resize(40);
  ghosts.use(used(9000, 2), 0);
  EXPECT_GT(ghosts.keys(), 7u * 3900) << "not in one go";
  for (uint64_t i = 0; i < 4000; ++i) ghosts.use(used(10'000 + i, 2), 0);
  EXPECT_EQ(ghosts.keys(), 7u * 40);
  ghosts.resize(80);
  for (uint64_t i = 0; i < 100; ++i) ghosts.use(used(20'000 + i, 3), 0);
  EXPECT_EQ(ghosts.keys(), 7u * 80);
}

// Pages of a topic are used ten times in turn and never again; then the next topic comes.
TEST(Ghosts, topics_that_pass_teach_a_short_h) {
  RetentionOptions options;
  options.capacity = 20;
  options.sample = 1;
  Ghosts ghosts(options);
  History history(1000, options.memory);
  int64_t now = 0;
  for (uint64_t topic = 0; topic < 60; ++topic) {
    for (int round = 0; round < 10; ++round) {
      for (uint64_t page = 0; page < 15; ++page) {
        const Use use = used(topic * 100 + page, now += 4);
        ghosts.use(use, level_rung(history.touch(use.key, use.at, [] { return Uses{}; }), 0));
      }
    }
  }
  EXPECT_LT(ghosts.h(), Duration::from_seconds(120));
}

// A few pages come back again and again between many that come once.
TEST(Ghosts, a_working_set_in_a_scan_teaches_a_long_h) {
  RetentionOptions options;
  options.capacity = 20;
  options.sample = 1;
  Ghosts ghosts(options);
  History history(100'000, options.memory);
  int64_t now = 0;
  for (uint64_t round = 0; round < 400; ++round) {
    for (uint64_t i = 0; i < 60; ++i) {
      const Use use = used(i < 15 ? i : 1000 + round * 100 + i, now += 4);
      ghosts.use(use, level_rung(history.touch(use.key, use.at, [] { return Uses{}; }), 0));
    }
  }
  EXPECT_GT(ghosts.h(), Duration::from_seconds(120));
}

TEST(History, forgets_down_to_a_smaller_limit_use_by_use) {
  History history(1000, Duration::from_seconds(1800));
  const auto none = [] { return Uses{}; };
  for (EntryKey key = 0; key < 1000; ++key) history.touch(key, Instant{kSecond}, none);
  EXPECT_EQ(history.size(), 1000u);
  history.resize(10);
  EXPECT_EQ(history.size(), 1000u) << "not in one go";
  for (EntryKey key = 2000; key < 3100; ++key) history.touch(key, Instant{2 * kSecond}, none);
  EXPECT_EQ(history.size(), 10u);
  history.resize(100);
  for (EntryKey key = 4000; key < 4200; ++key) history.touch(key, Instant{3 * kSecond}, none);
  EXPECT_EQ(history.size(), 100u);
}

}  // namespace
}  // namespace memdecay::retention
