// Every retention policy against a slow reference (slow_retention.h) over random histories: chains
// that grow, branch and come back, partial tails, entries that cannot pay, regions of different
// worth, removals, bursts at one time and long silences. What is held must agree after every use.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "daemon/policy/retention/retention.h"
#include "tests/unit/daemon/policy/retention/slow_retention.h"

namespace memdecay::retention {
namespace {

struct Event {
  test::SlowUse use;
  bool remove = false;  // instead of a use
};

// Conversations over one random tree: a key says what its chain was up to it.
std::vector<Event> random_events(uint64_t seed, size_t requests) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return random() % n; };
  std::vector<std::vector<uint64_t>> talks(12);
  std::vector<Event> events;
  int64_t at_ms = static_cast<int64_t>(below(1000));
  uint64_t fresh = 1;
  for (uint64_t chain = 0; chain < requests; ++chain) {
    if (below(3) > 0) at_ms += static_cast<int64_t>(below(below(20) == 0 ? 4'000'000 : 40'000));
    auto& talk = talks[below(4) == 0 ? below(12) : below(3)];
    if (below(15) == 0) talk.assign(1, below(3) == 0 ? 0 : fresh++);  // from one of few roots
    if (!talk.empty() && below(12) == 0) talk.resize(1 + below(talk.size()));
    for (uint64_t more = below(3); more > 0 && talk.size() < 14; --more) talk.push_back(fresh++);
    const bool tail = below(3) == 0;
    for (size_t i = 0; i < talk.size() + (tail ? 1 : 0); ++i) {
      test::SlowUse use;
      use.key = i < talk.size() ? talk[i] : fresh++;
      use.at_ms = at_ms;
      use.chain = chain;
      use.depth = static_cast<uint32_t>(i);
      use.partial = i == talk.size();
      use.cannot_pay = below(40) == 0;
      use.log2_b = std::vector<double>{0, 0, -0.7369655941662062, -1.25}[use.key % 4];
      events.push_back({use});
      if (!talk.empty() && below(60) == 0) {
        events.push_back({});
        events.back().use.key = talk[below(talk.size())];
        events.back().remove = true;
      }
    }
  }
  std::map<uint64_t, uint64_t> later;
  for (size_t at = events.size(); at-- > 0;) {
    if (events[at].remove) continue;
    auto [found, first] = later.try_emplace(events[at].use.key, kNever);
    events[at].use.next = found->second;
    found->second = at;
  }
  return events;
}

Use product_use(const test::SlowUse& slow) {
  Use use;
  use.key = slow.key;
  use.at = Instant{slow.at_ms * 1'000'000};
  use.chain = slow.chain;
  use.depth = slow.depth;
  use.body = slow.partial ? Body::kPartialTail : slow.cannot_pay ? Body::kCannotPay : Body::kWhole;
  use.log2_b = slow.log2_b;
  use.next = slow.next;
  return use;
}

struct Case {
  const char* name;
  size_t capacity;
};

class RandomUses : public testing::TestWithParam<Case> {};

TEST_P(RandomUses, hold_what_the_slow_reference_holds) {
  const auto [name, capacity] = GetParam();
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    RetentionOptions options;
    options.name = name;
    options.capacity = capacity;
    options.salt = seed;
    options.history = seed % 2 == 0 ? capacity + 3 : 300;
    const auto product = make_retention(options);
    ASSERT_TRUE(product.ok()) << product.status();
    const auto slow = test::make_slow_tier({name, capacity, seed, options.history});
    const bool can_remove = std::string_view(name) != "arc";  // its paper says nothing of it
    std::set<uint64_t> keys;
    size_t hits = 0, at = 0;
    for (const Event& event : random_events(seed * 977 + capacity, 600)) {
      ++at;
      keys.insert(event.use.key);
      if (event.remove) {
        if (can_remove) (*product)->remove(event.use.key);
        if (can_remove) slow->remove(event.use.key);
      } else {
        const bool hit = use_entry(**product, product_use(event.use), capacity);
        ASSERT_EQ(hit, slow->use(event.use)) << name << " seed " << seed << " event " << at;
        hits += hit;
      }
      const std::set<uint64_t> held = slow->held();
      ASSERT_EQ((*product)->size(), held.size()) << name << " seed " << seed << " event " << at;
      for (const uint64_t key : held) {
        ASSERT_TRUE((*product)->holds(key)) << name << " seed " << seed << " event " << at;
      }
    }
    EXPECT_GT(hits, 0u);
    EXPECT_GT(keys.size(), 2 * capacity) << "nothing had to leave";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, RandomUses,
    testing::Values(Case{"lru", 1}, Case{"lru", 23}, Case{"min", 1}, Case{"min", 23},
                    Case{"arc", 1}, Case{"arc", 23}, Case{"s3_fifo", 1}, Case{"s3_fifo", 23},
                    Case{"s3_fifo", 64}, Case{"decay", 1}, Case{"decay", 23}, Case{"decay", 64}),
    [](const auto& one) {
      return std::string(one.param.name) + "_" + std::to_string(one.param.capacity);
    });

}  // namespace
}  // namespace memdecay::retention
