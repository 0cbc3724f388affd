// The shadow table: what the daemon wrote is what a client reads, and nothing in it is believed.
#include "proto/contract/shadow_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "proto/contract/error.h"
#include "tests/unit/proto/contract/example_layout.h"

namespace memdecay {
namespace {

constexpr uint32_t kRecords = 64;

class ShadowTable : public ::testing::Test {
 protected:
  std::span<std::byte> memory() {
    return {reinterpret_cast<std::byte*>(words_.data()), shadow_table_bytes(kRecords)};
  }
  ShadowWriter writer() { return *ShadowWriter::format(memory(), kRecords); }
  ShadowReader reader() { return *ShadowReader::open(memory()); }

  std::vector<uint64_t> words_ = std::vector<uint64_t>(shadow_table_bytes(kRecords) / 8);
};

ShadowEntry entry_at(uint32_t slab, uint32_t index, uint32_t generation) {
  ShadowEntry entry{.slot = {{slab}, index, generation}, .state = SlotState::kValid};
  entry.key = PageKey{};
  entry.key->bytes.fill(static_cast<uint8_t>(generation));
  entry.space.bytes.fill(static_cast<uint8_t>(generation));
  entry.page = generation;
  entry.checksum = Checksum{.low = generation, .high = generation};
  return entry;
}

TEST_F(ShadowTable, reads_what_was_written) {
  ShadowWriter table = writer();
  table.set_daemon_epoch(5);
  ASSERT_TRUE(table.add_slab({3}, 8).ok());
  const ShadowEntry exact = entry_at(3, 7, 9);
  ShadowEntry hidden{.slot = {{3}, 0, 2}, .state = SlotState::kReserved, .session = {12}};
  ASSERT_TRUE(table.write(exact).ok());
  ASSERT_TRUE(table.write(hidden).ok());
  EXPECT_EQ(*reader().read({3}, 7), exact);
  EXPECT_EQ(*reader().read({3}, 0), hidden);
  EXPECT_EQ(reader().read({3}, 1)->state, SlotState::kFree);
  EXPECT_EQ(reader().daemon_epoch(), 5u);
  EXPECT_EQ(*reader().slots({3}), 8u);
}

TEST_F(ShadowTable, unknown_slabs_and_slots_are_errors) {
  ShadowWriter table = writer();
  ASSERT_TRUE(table.add_slab({3}, 8).ok());
  EXPECT_EQ(error_code(table.write(entry_at(4, 0, 1))), ErrorCode::kNotFound);
  EXPECT_EQ(error_code(table.write(entry_at(3, 8, 1))), ErrorCode::kOutOfRange);
  EXPECT_EQ(error_code(reader().read({4}, 0).status()), ErrorCode::kNotFound);
  EXPECT_EQ(error_code(reader().read({0}, 0).status()), ErrorCode::kNotFound);
  EXPECT_EQ(error_code(reader().read({3}, 8).status()), ErrorCode::kOutOfRange);
  EXPECT_EQ(error_code(table.add_slab({3}, 8)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(table.add_slab({0}, 8)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(table.add_slab({5}, kRecords)), ErrorCode::kResourceExhausted);
  EXPECT_EQ(error_code(table.remove_slab({5})), ErrorCode::kNotFound);
}

TEST_F(ShadowTable, records_of_a_removed_slab_are_used_again_and_forgotten) {
  ShadowWriter table = writer();
  ASSERT_TRUE(table.add_slab({1}, 24).ok());
  ASSERT_TRUE(table.add_slab({2}, 24).ok());
  ASSERT_TRUE(table.write(entry_at(1, 23, 4)).ok());
  ASSERT_TRUE(table.remove_slab({1}).ok());
  EXPECT_EQ(error_code(reader().read({1}, 23).status()), ErrorCode::kNotFound);
  ASSERT_TRUE(table.add_slab({3}, 24).ok());
  EXPECT_EQ(reader().read({3}, 23)->state, SlotState::kFree);
  EXPECT_EQ(error_code(table.add_slab({4}, 24)), ErrorCode::kResourceExhausted);
  ASSERT_TRUE(table.add_slab({4}, 16).ok());
}

TEST_F(ShadowTable, a_torn_record_is_never_read) {
  ShadowWriter table = writer();
  ASSERT_TRUE(table.add_slab({1}, 1).ok());
  ASSERT_TRUE(table.write(entry_at(1, 0, 1)).ok());
  std::atomic<bool> stop = false;
  std::thread writing([&] {
    for (uint32_t i = 1; !stop; i = i % 200 + 1) EXPECT_TRUE(table.write(entry_at(1, 0, i)).ok());
  });
  const ShadowReader table_reader = reader();
  int whole = 0;
  while (whole < 20'000) {
    const absl::StatusOr<ShadowEntry> entry = table_reader.read({1}, 0);
    if (!entry.ok()) {
      ASSERT_EQ(error_code(entry.status()), ErrorCode::kUnavailable);
      continue;
    }
    ASSERT_EQ(*entry, entry_at(1, 0, entry->slot.generation));
    ++whole;
  }
  stop = true;
  writing.join();
}

TEST_F(ShadowTable, foreign_memory_is_refused) {
  EXPECT_EQ(error_code(ShadowReader::open(memory()).status()), ErrorCode::kInvalidArgument);
  writer();
  EXPECT_FALSE(ShadowReader::open(memory().first(memory().size() - 1)).ok());
  EXPECT_FALSE(ShadowReader::open(memory().first(10)).ok());
  EXPECT_FALSE(ShadowWriter::format(memory(), kRecords + 1).ok());
  EXPECT_FALSE(ShadowWriter::format(memory(), 0).ok());
}

TEST_F(ShadowTable, random_damage_never_leads_outside_the_memory) {
  SeededNumbers numbers(23);
  const std::vector<uint64_t> clean(words_.size());
  int refused = 0;
  for (int round = 0; round < 2'000; ++round) {
    words_ = clean;
    ShadowWriter table = writer();
    ASSERT_TRUE(table.add_slab({1}, 16).ok());
    for (uint32_t i = 0; i < 16; ++i) ASSERT_TRUE(table.write(entry_at(1, i, i + 1)).ok());
    for (int i = 0; i < 4; ++i) {
      // The header, the first slab entry or a record.
      const size_t places[] = {numbers.below(64), 64 + numbers.below(16),
                               kShadowRecordsAt + numbers.below(16 * sizeof(ShadowRecord))};
      memory()[places[numbers.below(3)]] = static_cast<std::byte>(numbers.below(256));
    }
    const absl::StatusOr<ShadowReader> opened = ShadowReader::open(memory());
    refused += opened.ok() ? 0 : 1;
    for (uint32_t i = 0; opened.ok() && i < 50; ++i) {
      const absl::StatusOr<ShadowEntry> entry = opened->read({1}, i);
      if (entry.ok()) {
        EXPECT_EQ(entry->slot.slab, SlabId{1});
      }
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace memdecay
