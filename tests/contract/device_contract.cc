// The suite of device_contract.h: what is promised by Device, Slab, Mapping and Mover, one rule a
// test. Nothing here sleeps: a mover is held inside its callback to see what it does meanwhile.
#include "tests/contract/device_contract.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "cuda/checksum.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {

void DeviceContract::SetUp() {
  if (GetParam().begin) GetParam().begin();
  granule_ = GetParam().create(0)->properties().granularity_bytes;
  ASSERT_GT(granule_, 0u);
  device_ = GetParam().create(kGranules * granule_);
  importer_ = GetParam().create(0);
}

void DeviceContract::TearDown() {
  importer_.reset();
  device_.reset();
  if (GetParam().end) GetParam().end();
}

Slab DeviceContract::slab(uint64_t granules) {
  absl::StatusOr<Slab> made = device_->create_slab(granules * granule_);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

void DeviceContract::write(std::byte* to, const Bytes& bytes) {
  Completions completions;
  const auto mover = *device_->create_mover({}, completions.callback());
  ASSERT_TRUE(mover->submit({.from = bytes.data(), .to = to, .bytes = bytes.size()}).ok());
  ASSERT_TRUE(completions.await(1).front().status.ok());
}

Bytes DeviceContract::read(const std::byte* from, uint64_t bytes) {
  Bytes out(bytes);
  Completions completions;
  const auto mover = *device_->create_mover({}, completions.callback());
  EXPECT_TRUE(mover->submit({.from = from, .to = out.data(), .bytes = bytes}).ok());
  EXPECT_TRUE(completions.await(1).front().status.ok());
  return out;
}

namespace {

TEST_P(DeviceContract, says_what_it_is) {
  const DeviceProperties& properties = device_->properties();
  EXPECT_FALSE(properties.uuid.empty());
  EXPECT_EQ(properties.limit_bytes, kGranules * granule_);
  EXPECT_TRUE(device_->health().ok());
}

TEST_P(DeviceContract, fresh_memory_is_zero_also_when_used_before) {
  for (int round = 0; round < 2; ++round) {
    const Slab fresh = slab(2);
    EXPECT_EQ(read(fresh.address(), fresh.bytes()), Bytes(2 * granule_));
    write(fresh.address(), pattern(1, fresh.bytes()));
  }
}

TEST_P(DeviceContract, sizes_are_multiples_of_the_granularity) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, granule_ - 1, granule_ + 1}) {
    EXPECT_EQ(error_code(device_->create_slab(bytes).status()), ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(device_->create_slab(0 - granule_).ok());
  EXPECT_EQ(device_->used_bytes(), 0u);
}

TEST_P(DeviceContract, the_limit_is_hard_and_memory_comes_back) {
  Slab first = slab(kGranules - 2);
  const Slab second = slab(2);
  EXPECT_EQ(device_->used_bytes(), kGranules * granule_);
  EXPECT_EQ(error_code(device_->create_slab(granule_).status()), ErrorCode::kResourceExhausted);
  first.reset();
  EXPECT_EQ(device_->used_bytes(), 2 * granule_);
  EXPECT_TRUE(device_->create_slab(granule_).ok());
  EXPECT_EQ(error_code(importer_->create_slab(granule_).status()), ErrorCode::kResourceExhausted);
}

TEST_P(DeviceContract, moving_a_slab_moves_its_memory_once) {
  Slab first = slab(1);
  Slab second = std::move(first);
  EXPECT_FALSE(static_cast<bool>(first));
  EXPECT_EQ(second.bytes(), granule_);
  second = slab(2);
  EXPECT_EQ(device_->used_bytes(), 2 * granule_);
}

TEST_P(DeviceContract, an_imported_slab_shows_the_same_bytes) {
  const Slab owned = slab(2);
  const Bytes bytes = pattern(5, owned.bytes());
  write(owned.address(), bytes);
  for (const Access access : {Access::kReadOnly, Access::kReadWrite}) {
    Fd descriptor = *device_->export_slab(owned, access);
    EXPECT_NE(fcntl(descriptor.get(), F_GETFD) & FD_CLOEXEC, 0);
    const Mapping mapping = *importer_->map(std::move(descriptor), owned.bytes(), access);
    EXPECT_NE(mapping.address(), owned.address());
    EXPECT_EQ(mapping.access(), access);
    EXPECT_EQ(read(mapping.address(), mapping.bytes()), bytes);
  }
}

TEST_P(DeviceContract, a_writer_writes_into_the_owners_slab) {
  const Slab owned = slab(1);
  const Mapping mapping = *importer_->map(*device_->export_slab(owned, Access::kReadWrite),
                                          owned.bytes(), Access::kReadWrite);
  write(mapping.address(), pattern(6, granule_));
  EXPECT_EQ(read(owned.address(), granule_), pattern(6, granule_));
}

TEST_P(DeviceContract, a_read_only_descriptor_gives_no_writable_mapping) {
  if (device_->properties().read_only_guard != ReadOnlyGuard::kDescriptor) {
    GTEST_SKIP() << "this device cannot promise it";
  }
  const Slab owned = slab(1);
  Fd descriptor = *device_->export_slab(owned, Access::kReadOnly);
  EXPECT_EQ(
      error_code(importer_->map(std::move(descriptor), owned.bytes(), Access::kReadWrite).status()),
      ErrorCode::kPermission);
}

TEST_P(DeviceContract, foreign_descriptors_and_wrong_sizes_are_refused) {
  const Slab owned = slab(2);
  for (const uint64_t bytes : {uint64_t{0}, granule_, 3 * granule_}) {
    Fd descriptor = *device_->export_slab(owned, Access::kReadOnly);
    EXPECT_EQ(error_code(importer_->map(std::move(descriptor), bytes, Access::kReadOnly).status()),
              ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(error_code(importer_->map(Fd(), granule_, Access::kReadOnly).status()),
            ErrorCode::kInvalidArgument);
  Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(error_code(importer_->map(std::move(null), granule_, Access::kReadOnly).status()),
            ErrorCode::kInvalidArgument);
}

TEST_P(DeviceContract, a_mapping_outlives_the_owners_slab) {
  Slab owned = slab(1);
  write(owned.address(), pattern(7, granule_));
  const Mapping mapping = *importer_->map(*device_->export_slab(owned, Access::kReadOnly),
                                          owned.bytes(), Access::kReadOnly);
  owned.reset();
  EXPECT_EQ(read(mapping.address(), granule_), pattern(7, granule_));
}

TEST_P(DeviceContract, scrubbing_zeroes_exactly_its_range) {
  const Slab owned = slab(2);
  Bytes expected = pattern(8, owned.bytes());
  write(owned.address(), expected);
  ASSERT_TRUE(device_->scrub(owned, 100, granule_).ok());
  std::fill_n(expected.begin() + 100, granule_, std::byte{0});
  EXPECT_EQ(read(owned.address(), owned.bytes()), expected);
  EXPECT_EQ(error_code(device_->scrub(owned, 1, owned.bytes())), ErrorCode::kOutOfRange);
  EXPECT_EQ(error_code(device_->scrub(owned, ~uint64_t{0}, 2)), ErrorCode::kOutOfRange);
}

TEST_P(DeviceContract, moves_complete_once_and_in_order) {
  const Slab owned = slab(4);
  const Bytes bytes = pattern(9, 3 * granule_);
  Completions completions;
  const auto mover = *device_->create_mover({}, completions.callback());
  Bytes back(granule_);
  // Each reads what the one before wrote.
  ASSERT_TRUE(
      mover->submit({.id = {1}, .from = bytes.data(), .to = owned.address(), .bytes = granule_})
          .ok());
  ASSERT_TRUE(mover
                  ->submit({.id = {2},
                            .from = owned.address(),
                            .to = owned.address() + granule_,
                            .bytes = granule_})
                  .ok());
  ASSERT_TRUE(
      mover->submit({.id = {3}, .kind = MoveKind::kZero, .to = owned.address(), .bytes = granule_})
          .ok());
  ASSERT_TRUE(
      mover
          ->submit(
              {.id = {4}, .from = owned.address() + granule_, .to = back.data(), .bytes = granule_})
          .ok());
  const std::vector<MoveCompletion> done = completions.await(4);
  ASSERT_EQ(done.size(), 4u);
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(done[i].id, CopyId{i + 1});
    EXPECT_TRUE(done[i].status.ok());
    EXPECT_FALSE(done[i].checksum.has_value());
  }
  EXPECT_TRUE(std::equal(back.begin(), back.end(), bytes.begin()));
  EXPECT_EQ(read(owned.address(), granule_), Bytes(granule_));
  EXPECT_EQ(mover->stats().completed, 4u);
  EXPECT_EQ(mover->stats().in_flight, 0u);
  EXPECT_EQ(mover->stats().bytes, 4 * granule_);
}

TEST_P(DeviceContract, a_copy_takes_and_verifies_the_checksum) {
  const Slab owned = slab(2);
  const Bytes bytes = pattern(10, granule_ + 123);
  const Checksum right = checksum_of(bytes);
  Completions completions;
  const auto mover = *device_->create_mover({}, completions.callback());
  MoveRequest move{.id = {1},
                   .from = bytes.data(),
                   .to = owned.address(),
                   .bytes = bytes.size(),
                   .checksum = ChecksumMode::kTake};
  ASSERT_TRUE(mover->submit(move).ok());
  move.checksum = ChecksumMode::kVerify;
  move.expected = right;
  ASSERT_TRUE(mover->submit(move).ok());
  move.expected.high ^= 1;
  ASSERT_TRUE(mover->submit(move).ok());
  const std::vector<MoveCompletion> done = completions.await(3);
  EXPECT_EQ(done[0].checksum, right);
  EXPECT_TRUE(done[1].status.ok());
  EXPECT_EQ(error_code(done[2].status), ErrorCode::kDataLoss);
  EXPECT_EQ(done[2].checksum, right);
  EXPECT_EQ(mover->stats().failed, 1u);
}

TEST_P(DeviceContract, a_full_queue_refuses_and_does_not_block) {
  const Slab owned = slab(1);
  const Bytes bytes = pattern(11, granule_);
  Completions completions;
  const auto mover = *device_->create_mover({.queue_capacity = 3}, completions.callback());
  const MoveRequest move{.from = bytes.data(), .to = owned.address(), .bytes = granule_};
  completions.hold();
  ASSERT_TRUE(mover->submit(move).ok());
  completions.await_held();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(mover->submit(move).ok());
  const absl::Status full = mover->submit(move);
  EXPECT_EQ(error_code(full), ErrorCode::kResourceExhausted);
  EXPECT_GT(error_detail(full).retry_after_ms, 0);
  completions.release();
  EXPECT_EQ(completions.await(4).size(), 4u);
  EXPECT_TRUE(mover->submit(move).ok());
  completions.await(5);
}

TEST_P(DeviceContract, a_cancelled_move_never_happens_and_is_never_answered) {
  const Slab owned = slab(1);
  const Bytes bytes = pattern(12, granule_);
  Completions completions;
  const auto mover = *device_->create_mover({}, completions.callback());
  MoveRequest move{.id = {1}, .from = bytes.data(), .to = owned.address(), .bytes = 16};
  completions.hold();
  ASSERT_TRUE(mover->submit(move).ok());
  completions.await_held();
  EXPECT_EQ(mover->cancel({1}), CancelResult::kTooLate);
  move.id = {2};
  move.to = owned.address() + 64;
  ASSERT_TRUE(mover->submit(move).ok());
  move.id = {3};
  move.to = owned.address() + 128;
  ASSERT_TRUE(mover->submit(move).ok());
  EXPECT_EQ(mover->cancel({2}), CancelResult::kCancelled);
  EXPECT_EQ(mover->cancel({2}), CancelResult::kTooLate);
  completions.release();
  const std::vector<MoveCompletion> done = completions.await(2);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].id, CopyId{3});
  EXPECT_EQ(read(owned.address() + 64, 16), Bytes(16));
  EXPECT_EQ(mover->stats().in_flight, 0u);
}

TEST_P(DeviceContract, moves_that_make_no_sense_are_refused) {
  const Slab owned = slab(1);
  std::byte* at = owned.address();
  const Bytes bytes(64);
  Completions completions;
  const auto mover = *device_->create_mover({}, completions.callback());
  const MoveRequest bad[] = {
      {.from = bytes.data(), .to = at, .bytes = 0},
      {.from = nullptr, .to = at, .bytes = 8},
      {.from = bytes.data(), .to = nullptr, .bytes = 8},
      {.from = at, .to = at + 63, .bytes = 64},
      {.from = at + 63, .to = at, .bytes = 64},
      {.kind = MoveKind::kZero, .from = bytes.data(), .to = at, .bytes = 8},
      {.kind = MoveKind::kZero, .to = at, .bytes = 8, .checksum = ChecksumMode::kTake},
  };
  for (const MoveRequest& move : bad) {
    EXPECT_EQ(error_code(mover->submit(move)), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(mover->stats().in_flight, 0u);
  EXPECT_FALSE(device_->create_mover({.queue_capacity = 0}, completions.callback()).ok());
  EXPECT_FALSE(device_->create_mover({}, MoverCallback()).ok());
}

TEST_P(DeviceContract, a_mover_that_goes_drops_what_has_not_begun) {
  const Slab owned = slab(1);
  const Bytes bytes = pattern(13, granule_);
  Completions completions;
  auto mover = *device_->create_mover({}, completions.callback());
  completions.hold();
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(
        mover->submit({.id = {i}, .from = bytes.data(), .to = owned.address(), .bytes = granule_})
            .ok());
  }
  completions.await_held();
  completions.release();
  mover.reset();
  const size_t answered = completions.count();
  EXPECT_GE(answered, 1u);
  EXPECT_LE(answered, 10u);
}

}  // namespace
}  // namespace memdecay::cuda
