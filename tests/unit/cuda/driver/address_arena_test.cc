// AddressArena against a model: what is taken never overlaps, and what came back joins again.
#include "cuda/driver/address_arena.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace memdecay::cuda {
namespace {

TEST(AddressArena, ranges_never_overlap_and_join_when_they_come_back) {
  constexpr uint64_t kBase = 1000;
  constexpr uint64_t kBytes = 64;
  AddressArena arena({kBase, kBytes});
  std::map<uint64_t, uint64_t> taken;
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    if (random() % 2 == 0 || taken.empty()) {
      const uint64_t bytes = random() % 12 + 1;
      const auto address = arena.take(bytes);
      if (!address) continue;
      ASSERT_GE(*address, kBase);
      ASSERT_LE(*address + bytes, kBase + kBytes);
      for (const auto& [other, length] : taken) {
        ASSERT_TRUE(*address + bytes <= other || other + length <= *address);
      }
      taken[*address] = bytes;
    } else {
      auto at = taken.begin();
      std::advance(at, random() % taken.size());
      arena.give_back(at->first, at->second);
      taken.erase(at);
    }
  }
  for (const auto& [address, bytes] : taken) arena.give_back(address, bytes);
  EXPECT_EQ(arena.take(kBytes), kBase);  // one piece again
}

TEST(AddressArena, a_full_arena_gives_nothing) {
  AddressArena arena({0, 8});
  EXPECT_EQ(arena.take(9), std::nullopt);
  EXPECT_EQ(arena.take(8), 0u);
  EXPECT_EQ(arena.take(1), std::nullopt);
}

}  // namespace
}  // namespace memdecay::cuda
