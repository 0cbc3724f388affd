// The arena and the host tier: accounting, verification on return, places that are not re-used too
// early.
#include "daemon/tiers/host_tier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "cuda/checksum.h"
#include "daemon/base/random.h"
#include "daemon/tiers/arena.h"
#include "proto/contract/error.h"
#include "proto/contract/page_header.h"

namespace memdecay::tiers {
namespace {

constexpr uint64_t kPage = 256;

std::vector<std::byte> pattern(uint64_t seed, uint64_t bytes = kPage) {
  base::Random random(seed);
  std::vector<std::byte> page(bytes);
  for (std::byte& byte : page) byte = static_cast<std::byte>(random.next());
  return page;
}

Checksum put(HostTier& host, ContentId content, uint64_t seed, uint64_t bytes = kPage) {
  const absl::StatusOr<HostTier::Record> record = host.reserve(bytes);
  EXPECT_TRUE(record.ok());
  const std::vector<std::byte> page = pattern(seed, bytes);
  std::copy(page.begin(), page.end(), record->page());
  const Checksum checksum = cuda::checksum_of(page);
  host.commit(*record, content, checksum);
  return checksum;
}

// Reads as a copy would: begin, the bytes, end with their checksum.
absl::StatusOr<std::vector<std::byte>> get(HostTier& host, ContentId content) {
  const absl::StatusOr<HostTier::Record> record = host.begin_read(content);
  if (!record.ok()) return record.status();
  std::vector<std::byte> page(record->page(), record->page() + record->page_bytes);
  const absl::Status verified = host.end_read(*record, content, cuda::checksum_of(page));
  if (!verified.ok()) return verified;
  return page;
}

TEST(arena, places_do_not_overlap_and_come_back) {
  Arena arena(128, 1024);  // 8 places a chunk
  std::vector<Arena::Place> places;
  std::set<const std::byte*> addresses;
  for (int i = 0; i < 20; ++i) {
    places.push_back(*arena.take());
    std::memset(places.back().address, i, 128);
    addresses.insert(places.back().address);
  }
  EXPECT_EQ(addresses.size(), 20u);
  EXPECT_EQ(arena.used_places(), 20u);
  EXPECT_EQ(arena.mapped_bytes(), 3u * 1024);
  for (int i = 0; i < 20; ++i) {
    const std::byte* first = places[static_cast<size_t>(i)].address;
    EXPECT_TRUE(std::all_of(first, first + 128, [i](std::byte b) { return b == std::byte(i); }));
  }
  for (const Arena::Place& place : places) arena.give_back(place);
  EXPECT_EQ(arena.used_places(), 0u);
  EXPECT_EQ(arena.mapped_bytes(), 1024u);  // one empty chunk is kept, its memory is not
  EXPECT_EQ(arena.take()->address[0], std::byte{0});
}

TEST(arena, a_place_gets_a_new_generation_with_every_use) {
  Arena arena(128, 1024);
  const Arena::Place first = *arena.take();
  arena.give_back(first);
  const Arena::Place second = *arena.take();
  EXPECT_EQ(first.address, second.address);
  EXPECT_NE(first.generation, second.generation);
}

TEST(arena_death, giving_back_twice_stops_the_process) {
  Arena arena(128, 1024);
  const Arena::Place place = *arena.take();
  arena.give_back(place);
  EXPECT_DEATH(arena.give_back(place), "generation");
}

TEST(arena, random_use_keeps_the_books) {
  Arena arena(64, 640);
  base::Random random(3);
  std::vector<Arena::Place> places;
  for (int i = 0; i < 5000; ++i) {
    if (places.empty() || random.below(100) < (i / 500 % 2 == 0 ? 60u : 40u)) {
      const Arena::Place place = *arena.take();
      ASSERT_TRUE(std::none_of(places.begin(), places.end(), [&place](const Arena::Place& other) {
        return other.address == place.address;
      }));
      places.push_back(place);
    } else {
      std::swap(places[random.below(places.size())], places.back());
      arena.give_back(places.back());
      places.pop_back();
    }
    ASSERT_EQ(arena.used_places(), places.size());
    ASSERT_LE(arena.mapped_bytes(), (places.size() + 1) * 640);
  }
}

TEST(host_tier, returns_what_was_stored) {
  HostTier host({});
  put(host, ContentId{1}, 1);
  put(host, ContentId{2}, 2, 4096);
  EXPECT_EQ(*get(host, ContentId{1}), pattern(1));
  EXPECT_EQ(*get(host, ContentId{2}), pattern(2, 4096));
  EXPECT_EQ(error_code(get(host, ContentId{3}).status()), ErrorCode::kNotFound);
}

TEST(host_tier, counts_headers_and_keeps_its_limit) {
  const uint64_t record = HostTier::record_bytes(kPage);
  EXPECT_GE(record, kPage + kPageHeaderBytes);
  HostTier host({.limit_bytes = 2 * record});
  put(host, ContentId{1}, 1);
  const absl::StatusOr<HostTier::Record> second = host.reserve(kPage);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(host.used_bytes(), 2 * record);  // what is being written counts
  EXPECT_EQ(error_code(host.reserve(kPage).status()), ErrorCode::kResourceExhausted);
  host.abandon(*second);
  EXPECT_EQ(host.used_bytes(), record);
  host.drop(ContentId{1});
  EXPECT_EQ(host.used_bytes(), 0u);
  EXPECT_EQ(error_code(host.reserve(0).status()), ErrorCode::kInvalidArgument);
}

TEST(host_tier, a_flipped_bit_is_data_loss_and_the_replica_leaves_index_and_limit) {
  for (const uint64_t bit : {uint64_t{0}, uint64_t{1000}, kPage * 8 - 1}) {
    HostTier host({});
    put(host, ContentId{1}, 1);
    ASSERT_TRUE(host.flip_bit(ContentId{1}, bit).ok());
    EXPECT_EQ(error_code(get(host, ContentId{1}).status()), ErrorCode::kDataLoss);
    EXPECT_FALSE(host.contains(ContentId{1}));
    EXPECT_EQ(host.used_bytes(), 0u);
    EXPECT_EQ(host.checksum_failures(), 1u);
    EXPECT_EQ(error_code(get(host, ContentId{1}).status()), ErrorCode::kNotFound);
  }
}

TEST(host_tier, zeroed_bytes_are_data_loss) {
  HostTier host({});
  put(host, ContentId{1}, 1);
  ASSERT_TRUE(host.zero(ContentId{1}).ok());
  EXPECT_EQ(error_code(get(host, ContentId{1}).status()), ErrorCode::kDataLoss);
}

TEST(host_tier, a_damaged_header_is_data_loss_before_anything_is_read) {
  HostTier host({});
  put(host, ContentId{1}, 1);
  const absl::StatusOr<HostTier::Record> record = host.begin_read(ContentId{1});
  record->place.address[kPageHeaderGenerationAt] ^= std::byte{1};
  // While it is read: found at the end. The bytes themselves are well.
  const Checksum bytes = cuda::checksum_of({record->page(), kPage});
  EXPECT_EQ(error_code(host.end_read(*record, ContentId{1}, bytes)), ErrorCode::kDataLoss);
  EXPECT_EQ(host.used_bytes(), 0u);

  put(host, ContentId{2}, 2);
  const absl::StatusOr<HostTier::Record> second = host.begin_read(ContentId{2});
  second->place.address[kPageHeaderMagicAt] ^= std::byte{1};
  ASSERT_TRUE(host.end_read(*second, ContentId{2}, std::nullopt).ok());
  EXPECT_EQ(error_code(host.begin_read(ContentId{2}).status()), ErrorCode::kDataLoss);
}

TEST(host_tier, one_contents_bytes_are_never_read_as_anothers) {
  HostTier host({});
  put(host, ContentId{1}, 1);
  put(host, ContentId{2}, 2);
  const absl::StatusOr<HostTier::Record> one = host.begin_read(ContentId{1});
  const absl::StatusOr<HostTier::Record> two = host.begin_read(ContentId{2});
  // Header and page of 2 stand where 1 is: every checksum in there is right.
  std::memcpy(one->place.address, two->place.address, HostTier::record_bytes(kPage));
  EXPECT_EQ(error_code(host.end_read(*one, ContentId{1}, cuda::checksum_of(pattern(2)))),
            ErrorCode::kDataLoss);
  EXPECT_TRUE(host.end_read(*two, ContentId{2}, cuda::checksum_of(pattern(2))).ok());
}

TEST(host_tier, a_dropped_replica_stays_until_its_last_reader_has_ended) {
  HostTier host({});
  put(host, ContentId{1}, 1);
  const absl::StatusOr<HostTier::Record> first = host.begin_read(ContentId{1});
  const absl::StatusOr<HostTier::Record> second = host.begin_read(ContentId{1});
  host.drop(ContentId{1});
  EXPECT_FALSE(host.contains(ContentId{1}));
  EXPECT_EQ(host.used_bytes(), HostTier::record_bytes(kPage));
  // The place is not given to anybody else meanwhile.
  put(host, ContentId{2}, 2);
  EXPECT_TRUE(host.end_read(*first, ContentId{1}, cuda::checksum_of(pattern(1))).ok());
  EXPECT_EQ(host.used_bytes(), 2 * HostTier::record_bytes(kPage));
  EXPECT_TRUE(host.end_read(*second, ContentId{1}, cuda::checksum_of(pattern(1))).ok());
  EXPECT_EQ(host.used_bytes(), HostTier::record_bytes(kPage));
}

TEST(host_tier, storing_again_replaces_the_replica) {
  HostTier host({});
  put(host, ContentId{1}, 1);
  put(host, ContentId{1}, 9);
  EXPECT_EQ(*get(host, ContentId{1}), pattern(9));
  EXPECT_EQ(host.used_bytes(), HostTier::record_bytes(kPage));
  EXPECT_EQ(host.replicas(), 1u);
}

TEST(host_tier, damage_to_what_is_not_there_is_refused) {
  HostTier host({});
  EXPECT_EQ(error_code(host.flip_bit(ContentId{1}, 0)), ErrorCode::kNotFound);
  EXPECT_EQ(error_code(host.zero(ContentId{1})), ErrorCode::kNotFound);
  put(host, ContentId{1}, 1);
  EXPECT_EQ(error_code(host.flip_bit(ContentId{1}, kPage * 8)), ErrorCode::kOutOfRange);
}

}  // namespace
}  // namespace memdecay::tiers
