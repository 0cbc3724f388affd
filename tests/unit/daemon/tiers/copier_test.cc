// The device tier and the copier on a host device with its real mover.
#include "daemon/tiers/copier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cuda/checksum.h"
#include "cuda/host_device.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/random.h"
#include "daemon/tiers/shadow_file.h"
#include "proto/contract/error.h"

namespace memdecay::tiers {
namespace {

constexpr uint64_t kPage = 8192;
constexpr SlabId kSlab{1};

std::vector<std::byte> pattern(uint64_t seed) {
  base::Random random(seed);
  std::vector<std::byte> page(kPage);
  for (std::byte& byte : page) byte = static_cast<std::byte>(random.next());
  return page;
}

class CopierTest : public testing::Test {
 protected:
  explicit CopierTest(HostTierOptions options = {})
      : device_(*cuda::create_host_device({.limit_bytes = uint64_t{1} << 20})),
        slabs_(*device_),
        host_(options),
        copier_(*Copier::create(*device_, slabs_, host_, [this](const CopyOutcome& outcome) {
          ended_.put_always(outcome);
        })) {
    EXPECT_TRUE(slabs_.create(kSlab, {kPage, 4}).ok());
  }

  std::byte* slot(uint32_t index) { return *slabs_.address(kSlab, index); }
  void fill(uint32_t index, uint64_t seed) {
    const std::vector<std::byte> page = pattern(seed);
    std::copy(page.begin(), page.end(), slot(index));
  }
  bool holds(uint32_t index, uint64_t seed) {
    const std::vector<std::byte> page = pattern(seed);
    return std::equal(page.begin(), page.end(), slot(index));
  }
  CopyOutcome next() {
    while (true) {
      if (std::optional<CopyOutcome> outcome = ended_.take()) return *outcome;
      wake_.wait();
    }
  }
  void start(uint64_t id, CopyDirection direction, uint64_t content, uint32_t index) {
    copier_->start({CopyId{id}, direction, ContentId{content}, kSlab, index, kPage});
  }
  CopyOutcome copy(uint64_t id, CopyDirection direction, uint64_t content, uint32_t index) {
    start(id, direction, content, index);
    return copier_->finish(next());
  }

  base::Wake wake_;
  base::Mailbox<CopyOutcome> ended_{64, wake_};
  std::unique_ptr<cuda::Device> device_;
  DeviceTier slabs_;
  HostTier host_;
  std::unique_ptr<Copier> copier_;
};

TEST_F(CopierTest, a_page_goes_to_the_host_and_back_unchanged) {
  fill(0, 7);
  const CopyOutcome out = copy(1, CopyDirection::kToHost, 5, 0);
  ASSERT_TRUE(out.status.ok()) << out.status;
  EXPECT_EQ(out.checksum, cuda::checksum_of(pattern(7)));
  EXPECT_TRUE(host_.contains(ContentId{5}));
  fill(0, 8);  // the slot has another user
  const CopyOutcome back = copy(2, CopyDirection::kToDevice, 5, 3);
  ASSERT_TRUE(back.status.ok()) << back.status;
  EXPECT_EQ(back.checksum, out.checksum);
  EXPECT_TRUE(holds(3, 7));
  EXPECT_EQ(copier_->in_flight(), 0u);
  EXPECT_EQ(copier_->totals().to_host_bytes, kPage);
  EXPECT_EQ(copier_->totals().to_device_bytes, kPage);
}

TEST_F(CopierTest, verify_tells_the_checksum_and_moves_nothing) {
  fill(2, 4);
  const CopyOutcome outcome = copy(1, CopyDirection::kVerify, 5, 2);
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.checksum, cuda::checksum_of(pattern(4)));
  EXPECT_EQ(host_.used_bytes(), 0u);
}

TEST_F(CopierTest, a_damaged_replica_is_data_loss_and_its_bytes_do_not_stay_in_the_slot) {
  fill(0, 7);
  ASSERT_TRUE(copy(1, CopyDirection::kToHost, 5, 0).status.ok());
  ASSERT_TRUE(host_.flip_bit(ContentId{5}, 12345).ok());
  EXPECT_EQ(error_code(copy(2, CopyDirection::kToDevice, 5, 1).status), ErrorCode::kDataLoss);
  EXPECT_TRUE(std::all_of(slot(1), slot(1) + kPage, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(host_.used_bytes(), 0u);
  EXPECT_EQ(error_code(copy(3, CopyDirection::kToDevice, 5, 1).status), ErrorCode::kDataLoss);
}

TEST_F(CopierTest, what_cannot_start_is_answered_once_with_the_reason) {
  EXPECT_EQ(error_code(copy(1, CopyDirection::kToDevice, 9, 0).status), ErrorCode::kDataLoss);
  EXPECT_EQ(error_code(copy(2, CopyDirection::kToHost, 9, 4).status), ErrorCode::kOutOfRange);
  copier_->start({CopyId{3}, CopyDirection::kToHost, ContentId{9}, SlabId{77}, 0, kPage});
  EXPECT_EQ(error_code(copier_->finish(next()).status), ErrorCode::kNotFound);
  copier_->start({CopyId{4}, CopyDirection::kToHost, ContentId{9}, kSlab, 0, kPage / 2});
  EXPECT_EQ(error_code(copier_->finish(next()).status), ErrorCode::kInvalidArgument);
  EXPECT_EQ(copier_->in_flight(), 0u);
  EXPECT_EQ(host_.used_bytes(), 0u);
}

TEST_F(CopierTest, a_replica_is_there_only_after_finish) {
  fill(0, 7);
  start(1, CopyDirection::kToHost, 5, 0);
  const CopyOutcome outcome = next();
  EXPECT_FALSE(host_.contains(ContentId{5}));
  EXPECT_TRUE(copier_->finish(outcome).status.ok());
  EXPECT_TRUE(host_.contains(ContentId{5}));
}

TEST_F(CopierTest, a_cancelled_copy_is_answered_and_never_makes_a_replica) {
  fill(0, 7);
  for (uint64_t id = 1; id <= 50; ++id) {  // some in time, some too late
    start(id, CopyDirection::kToHost, id, 0);
    copier_->cancel(CopyId{id});
  }
  for (uint64_t id = 1; id <= 50; ++id) {
    EXPECT_TRUE(absl::IsCancelled(copier_->finish(next()).status));
  }
  EXPECT_EQ(host_.replicas(), 0u);
  EXPECT_EQ(host_.used_bytes(), 0u);
  EXPECT_EQ(copier_->in_flight(), 0u);
}

TEST_F(CopierTest, a_content_dropped_while_it_is_stored_does_not_come_back) {
  start(1, CopyDirection::kToHost, 5, 0);
  host_.drop(ContentId{5});
  copier_->unwanted(ContentId{5});
  EXPECT_TRUE(absl::IsCancelled(copier_->finish(next()).status));
  EXPECT_EQ(host_.used_bytes(), 0u);
}

TEST_F(CopierTest, a_destroyed_slab_lives_until_its_last_copy_has_ended) {
  fill(0, 7);
  start(1, CopyDirection::kToHost, 5, 0);
  slabs_.destroy(kSlab);
  EXPECT_EQ(slabs_.slabs(), 1u);
  EXPECT_GT(device_->used_bytes(), 0u);
  EXPECT_FALSE(slabs_.export_slab(kSlab, cuda::Access::kReadOnly).ok());
  EXPECT_TRUE(copier_->finish(next()).status.ok());
  EXPECT_EQ(slabs_.slabs(), 0u);
  EXPECT_EQ(device_->used_bytes(), 0u);
}

TEST_F(CopierTest, a_replica_dropped_while_it_is_read_still_arrives) {
  fill(0, 7);
  ASSERT_TRUE(copy(1, CopyDirection::kToHost, 5, 0).status.ok());
  start(2, CopyDirection::kToDevice, 5, 1);
  host_.drop(ContentId{5});
  EXPECT_TRUE(copier_->finish(next()).status.ok());
  EXPECT_TRUE(holds(1, 7));
  EXPECT_EQ(host_.used_bytes(), 0u);
}

TEST_F(CopierTest, going_down_with_copies_in_flight_leaves_nothing) {
  for (uint64_t id = 1; id <= 20; ++id) start(id, CopyDirection::kToHost, id, 0);
  copier_.reset();
  EXPECT_EQ(host_.used_bytes(), 0u);
  slabs_.destroy(kSlab);
  EXPECT_EQ(device_->used_bytes(), 0u);
}

class SmallHostTest : public CopierTest {
 protected:
  SmallHostTest() : CopierTest({.limit_bytes = HostTier::record_bytes(kPage)}) {}
};

TEST_F(SmallHostTest, a_full_host_tier_fails_that_copy_alone) {
  fill(0, 7);
  ASSERT_TRUE(copy(1, CopyDirection::kToHost, 5, 0).status.ok());
  EXPECT_EQ(error_code(copy(2, CopyDirection::kToHost, 6, 0).status),
            ErrorCode::kResourceExhausted);
  host_.drop(ContentId{5});
  EXPECT_TRUE(copy(3, CopyDirection::kToHost, 6, 0).status.ok());
}

TEST(device_tier, slots_lie_side_by_side_and_shapes_are_checked) {
  const auto device = *cuda::create_host_device({.limit_bytes = 64 << 10});
  DeviceTier slabs(*device);
  ASSERT_TRUE(slabs.create(kSlab, {.page_bytes = 1000, .pages = 5}).ok());
  EXPECT_EQ(*slabs.address(kSlab, 3) - *slabs.address(kSlab, 0), 3000);
  EXPECT_EQ(device->used_bytes() % device->properties().granularity_bytes, 0u);
  EXPECT_GE(device->used_bytes(), 5000u);
  EXPECT_EQ(error_code(slabs.address(kSlab, 5).status()), ErrorCode::kOutOfRange);
  EXPECT_EQ(error_code(slabs.create(kSlab, {1000, 5})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(slabs.create(SlabId{2}, {0, 5})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(slabs.create(SlabId{2}, {1000, 0})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(slabs.create(SlabId{2}, {1 << 20, 1})), ErrorCode::kResourceExhausted);
  slabs.destroy(SlabId{2});  // never made
  slabs.destroy(kSlab);
  EXPECT_EQ(device->used_bytes(), 0u);
}

TEST(device_tier, a_reader_gets_a_descriptor_that_cannot_be_mapped_writable) {
  const auto device = *cuda::create_host_device({.limit_bytes = 64 << 10});
  DeviceTier slabs(*device);
  ASSERT_TRUE(slabs.create(kSlab, {4096, 2}).ok());
  const auto client = *cuda::create_host_device({});
  absl::StatusOr<SlabExport> reader = slabs.export_slab(kSlab, cuda::Access::kReadOnly);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->shape.pages, 2u);
  EXPECT_EQ(
      error_code(client->map(std::move(reader->descriptor), reader->bytes, cuda::Access::kReadWrite)
                     .status()),
      ErrorCode::kPermission);
  absl::StatusOr<SlabExport> writer = slabs.export_slab(kSlab, cuda::Access::kReadWrite);
  const auto mapped =
      client->map(std::move(writer->descriptor), writer->bytes, cuda::Access::kReadWrite);
  ASSERT_TRUE(mapped.ok());
  mapped->address()[4096] = std::byte{9};
  EXPECT_EQ(**slabs.address(kSlab, 1), std::byte{9});
}

TEST(device_tier, a_scrubbed_slot_is_zero_and_its_neighbour_is_not) {
  const auto device = *cuda::create_host_device({.limit_bytes = 64 << 10});
  DeviceTier slabs(*device);
  ASSERT_TRUE(slabs.create(kSlab, {4096, 2}).ok());
  std::fill_n(*slabs.address(kSlab, 0), 8192, std::byte{7});
  ASSERT_TRUE(slabs.scrub(kSlab, 0).ok());
  EXPECT_EQ((*slabs.address(kSlab, 0))[4095], std::byte{0});
  EXPECT_EQ((*slabs.address(kSlab, 1))[0], std::byte{7});
}

TEST(shadow_file, a_client_reads_what_the_daemon_wrote_and_cannot_write) {
  absl::StatusOr<ShadowFile> file = ShadowFile::create(16);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->writer().add_slab(kSlab, 4).ok());
  ShadowEntry entry;
  entry.slot = {kSlab, 2, 5};
  entry.state = SlotState::kValid;
  entry.key = PageKey{{1, 2, 3}};
  entry.checksum = Checksum{4, 5};
  ASSERT_TRUE(file->writer().write(entry).ok());
  absl::StatusOr<UniqueFd> shared = file->share();
  ASSERT_TRUE(shared.ok());
  const auto client = *cuda::create_host_device({});
  EXPECT_FALSE(client->map(*file->share(), file->bytes(), cuda::Access::kReadWrite).ok());
  const auto mapping = client->map(*std::move(shared), file->bytes(), cuda::Access::kReadOnly);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  const auto reader = ShadowReader::open(mapping->host_bytes());
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(*reader->read(kSlab, 2), entry);
  EXPECT_EQ(error_code(ShadowFile::create(0).status()), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace memdecay::tiers
