// What each retention policy promises, a rule a test.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "daemon/policy/retention/ladder.h"
#include "daemon/policy/retention/retention.h"
#include "proto/contract/error.h"

namespace memdecay::retention {
namespace {

std::unique_ptr<Retention> made(const std::string& name, size_t capacity, uint64_t salt = 0) {
  RetentionOptions options;
  options.name = name;
  options.capacity = capacity;
  options.salt = salt;
  auto retention = make_retention(options);
  EXPECT_TRUE(retention.ok()) << retention.status();
  return *std::move(retention);
}

Use a_use(EntryKey key, int64_t second, uint64_t chain, uint32_t depth = 0) {
  Use use;
  use.key = key;
  use.at = Instant{second * 1'000'000'000};
  use.chain = chain;
  use.depth = depth;
  return use;
}

std::vector<EntryKey> leaving_order(Retention& retention) {
  std::vector<EntryKey> order;
  while (const auto key = retention.evict([](EntryKey) { return true; })) order.push_back(*key);
  return order;
}

TEST(Retention, refuses_unknown_names_and_lists_the_known_ones) {
  RetentionOptions options;
  options.name = "fifo";
  options.capacity = 1;
  const auto refused = make_retention(options);
  EXPECT_EQ(error_code(refused.status()), ErrorCode::kInvalidArgument);
  for (const std::string_view name : retention_names()) {
    EXPECT_NE(error_detail(refused.status()).todo.find(name), std::string::npos) << name;
  }
}

TEST(Retention, refuses_a_capacity_of_nothing_and_constants_out_of_range) {
  RetentionOptions options;
  EXPECT_EQ(error_code(make_retention(options).status()), ErrorCode::kInvalidArgument);
  options.capacity = 1;
  EXPECT_TRUE(make_retention(options).ok());
  options.memory = Duration{};
  EXPECT_FALSE(make_retention(options).ok());
  options.memory = Duration::from_seconds(1);
  options.sample = 0;
  EXPECT_FALSE(make_retention(options).ok());
}

TEST(Retention, what_may_not_leave_stays_and_the_next_one_goes) {
  for (const std::string_view name : retention_names()) {
    const auto retention = made(std::string(name), 8);
    for (EntryKey key = 1; key <= 8; ++key) {
      use_entry(*retention, a_use(key, static_cast<int64_t>(key), key), 8);
    }
    use_entry(*retention, a_use(3, 9, 9), 8);
    EXPECT_FALSE(retention->evict([](EntryKey) { return false; }).has_value()) << name;
    EXPECT_EQ(retention->size(), 8u) << name;
    for (int i = 0; i < 4; ++i) {
      const auto key = retention->evict([](EntryKey k) { return k % 2 == 0; });
      ASSERT_TRUE(key.has_value()) << name;
      EXPECT_EQ(*key % 2, 0u) << name;
      EXPECT_FALSE(retention->holds(*key)) << name;
    }
    EXPECT_FALSE(retention->evict([](EntryKey k) { return k % 2 == 0; }).has_value()) << name;
    EXPECT_EQ(leaving_order(*retention).size(), 4u) << name;
  }
}

TEST(Retention, a_removed_entry_is_gone_and_removing_it_again_does_nothing) {
  for (const std::string_view name : retention_names()) {
    const auto retention = made(std::string(name), 4);
    for (EntryKey key = 1; key <= 4; ++key) use_entry(*retention, a_use(key, 1, key), 4);
    retention->remove(2);
    retention->remove(2);
    retention->remove(77);
    EXPECT_EQ(retention->size(), 3u) << name;
    EXPECT_FALSE(retention->holds(2)) << name;
    EXPECT_FALSE(use_entry(*retention, a_use(2, 2, 9), 4)) << name;
    EXPECT_EQ(retention->size(), 4u) << name;
  }
}

TEST(Decay, inside_one_chain_the_leaf_leaves_before_the_root) {
  const auto retention = made("decay", 8);
  for (uint32_t depth = 0; depth < 4; ++depth) {
    use_entry(*retention, a_use(10 + depth, 5, 1, depth), 8);
  }
  for (uint32_t depth = 0; depth < 3; ++depth) {
    use_entry(*retention, a_use(20 + depth, 5, 2, depth), 8);
  }
  EXPECT_EQ(leaving_order(*retention), (std::vector<EntryKey>{13, 12, 11, 10, 22, 21, 20}));
}

TEST(Decay, a_root_that_several_chains_use_outlives_their_leaves) {
  const auto retention = made("decay", 8);
  for (uint64_t chain = 1; chain <= 3; ++chain) {
    use_entry(*retention, a_use(1, static_cast<int64_t>(chain), chain, 0), 8);
    use_entry(*retention, a_use(10 + chain, static_cast<int64_t>(chain), chain, 1), 8);
  }
  EXPECT_EQ(leaving_order(*retention), (std::vector<EntryKey>{11, 12, 13, 1}));
}

TEST(Decay, a_scan_does_not_wash_out_what_is_used_again_and_again) {
  const auto retention = made("decay", 16);
  uint64_t chain = 0;
  for (int round = 0; round < 8; ++round) {
    for (EntryKey key = 1; key <= 8; ++key) use_entry(*retention, a_use(key, round, ++chain), 16);
  }
  for (EntryKey key = 1000; key < 1200; ++key) {
    use_entry(*retention, a_use(key, 10, ++chain), 16);
  }
  for (EntryKey key = 1; key <= 8; ++key) EXPECT_TRUE(retention->holds(key)) << key;
}

TEST(Decay, an_elder_does_not_live_for_ever) {
  const auto retention = made("decay", 16);
  for (uint64_t chain = 1; chain <= 32; ++chain) use_entry(*retention, a_use(1, 0, chain), 16);
  for (uint64_t i = 0; i < 3000; ++i) {
    use_entry(*retention, a_use(1000 + i, static_cast<int64_t>(i) * 10, 100 + i), 16);
  }
  EXPECT_FALSE(retention->holds(1));
}

TEST(Decay, worth_of_the_region_decides_between_equals) {
  const auto retention = made("decay", 4);
  Use cheap = a_use(1, 2, 2), dear = a_use(2, 1, 1);
  cheap.log2_b = -1;
  use_entry(*retention, dear, 4);
  use_entry(*retention, cheap, 4);
  EXPECT_EQ(leaving_order(*retention), (std::vector<EntryKey>{1, 2}));
}

TEST(Decay, a_partial_tail_is_not_admitted_and_leaves_no_trace) {
  const auto with = made("decay", 4), without = made("decay", 4);
  for (uint64_t i = 0; i < 200; ++i) {
    const Use whole = a_use(i % 7, static_cast<int64_t>(i), i, 0);
    EXPECT_EQ(use_entry(*with, whole, 4), use_entry(*without, whole, 4));
    Use tail = a_use(5000 + i % 2, static_cast<int64_t>(i), i, 1);
    tail.body = Body::kPartialTail;
    EXPECT_FALSE(use_entry(*with, tail, 4));
  }
  EXPECT_EQ(leaving_order(*with), leaving_order(*without));
}

TEST(Decay, what_cannot_pay_is_remembered_but_not_admitted) {
  const auto retention = made("decay", 4);
  Use use = a_use(1, 1, 1);
  use.body = Body::kCannotPay;
  for (use.chain = 1; use.chain <= 4; ++use.chain) EXPECT_FALSE(use_entry(*retention, use, 4));
  EXPECT_EQ(retention->size(), 0u);
  use.body = Body::kWhole;
  EXPECT_FALSE(use_entry(*retention, use, 4));
  use_entry(*retention, a_use(2, 2, 10), 4);
  EXPECT_EQ(leaving_order(*retention), (std::vector<EntryKey>{2, 1})) << "its four uses count";
}

TEST(Decay, a_use_outlives_its_eviction) {
  const auto retention = made("decay", 2);
  for (uint64_t chain = 1; chain <= 8; ++chain) use_entry(*retention, a_use(1, 1, chain), 2);
  while (retention->holds(1)) retention->evict([](EntryKey) { return true; });
  use_entry(*retention, a_use(1, 2, 20), 2);
  use_entry(*retention, a_use(2, 3, 21), 2);
  use_entry(*retention, a_use(3, 4, 22), 2);
  EXPECT_TRUE(retention->holds(1)) << "it was used nine times, the others once";
}

TEST(Decay, memory_is_bounded_however_many_keys_there_are) {
  RetentionOptions options;
  options.capacity = 500;
  options.history = 4000;
  const auto retention = make_retention(options);
  ASSERT_TRUE(retention.ok());
  size_t at_first = 0;
  for (uint64_t i = 0; i < 200'000; ++i) {
    use_entry(**retention, a_use(i * 2654435761u, static_cast<int64_t>(i / 50), i), 500);
    if (i == 20'000) at_first = (*retention)->bytes();
  }
  EXPECT_EQ((*retention)->bytes(), at_first);
  EXPECT_LT(at_first, 4000u * 128 + 500u * 4 * 128 + 200'000);
}

TEST(Decay, the_same_salt_gives_the_same_decisions) {
  const auto one = made("decay", 32, 7), two = made("decay", 32, 7);
  for (uint64_t i = 0; i < 5000; ++i) {
    const Use use = a_use(i * i % 97, static_cast<int64_t>(i), i);
    EXPECT_EQ(use_entry(*one, use, 32), use_entry(*two, use, 32));
  }
  EXPECT_EQ(leaving_order(*one), leaving_order(*two));
}

TEST(Ladder, one_ladder_answers_for_every_h) {
  Ladder ladder;
  ladder.put(a_use(1, 0, 1), rung_of(3));    // old, used eight times
  ladder.put(a_use(2, 100, 2), rung_of(0));  // young, used once
  const auto anything = [](EntryKey) { return true; };
  EXPECT_EQ(ladder.lowest(Duration::from_seconds(15), anything), EntryKey{1});
  EXPECT_EQ(ladder.lowest(Duration::from_seconds(960), anything), EntryKey{2});
}

TEST(Ladder, levels_beyond_its_ends_stand_at_its_ends) {
  EXPECT_EQ(rung_of(-1e9), kLowestRung);
  EXPECT_EQ(rung_of(1e9), kHighestRung);
  EXPECT_EQ(rung_of(1.0), kRungsABit);
}

}  // namespace
}  // namespace memdecay::retention
