// What only DriverDevice promises: no context before a move, memory that is answered for, loss as a
// value, and moves longer than the pinned buffers. The rest is the device contract
// (tests/contract/device_contract_fake_test.cc).
#include <fcntl.h>

#include <thread>
#include <vector>

#include "cuda/checksum.h"
#include "proto/contract/error.h"
#include "tests/contract/completions.h"
#include "tests/support/fakecuda/fixture.h"

namespace memdecay::cuda {
namespace {

class DriverDeviceTest : public OnFakeDriver {
 protected:
  static absl::Status move(Device& device, const MoveRequest& request) {
    Completions completions;
    const auto mover = *device.create_mover({}, completions.callback());
    if (absl::Status status = mover->submit(request); !status.ok()) return status;
    return completions.await(1).front().status;
  }
};

TEST_F(DriverDeviceTest, an_importer_has_no_context_and_a_descriptor_is_not_inherited) {
  const auto owner = *open(kGranule);
  const auto importer = *open(0);
  const Slab slab = *owner->create_slab(kGranule);
  const uint64_t contexts = fakecuda_calls("cuDevicePrimaryCtxRetain");
  Fd descriptor = *owner->export_slab(slab, Access::kReadWrite);
  EXPECT_NE(::fcntl(descriptor.get(), F_GETFD) & FD_CLOEXEC, 0);
  const Mapping mapping = *importer->map(std::move(descriptor), kGranule, Access::kReadWrite);
  EXPECT_TRUE(mapping.host_bytes().empty());  // no CPU code may touch it
  EXPECT_EQ(fakecuda_calls("cuDevicePrimaryCtxRetain"), contexts);
}

TEST_F(DriverDeviceTest, want_of_memory_is_answered_with_who_has_it) {
  configure("vram=8388608 taken=4194304");
  const auto owner = *open(8 * kGranule);
  const Slab slab = *owner->create_slab(kGranule);
  const absl::Status refused = owner->create_slab(2 * kGranule).status();
  EXPECT_EQ(error_code(refused), ErrorCode::kResourceExhausted);
  const ErrorDetail detail = error_detail(refused);
  EXPECT_NE(detail.there.find("slabs of this process have 2097152 bytes"), std::string::npos);
  EXPECT_NE(detail.there.find("2097152 of 8388608 are free, 4194304 are others'"),
            std::string::npos)
      << refused;
  EXPECT_GT(detail.retry_after_ms, 0);
  EXPECT_EQ(owner->used_bytes(), kGranule);
}

TEST_F(DriverDeviceTest, freed_memory_comes_back_when_the_last_importer_lets_go) {
  configure("vram=4194304");
  const auto owner = *open(8 * kGranule);
  const auto importer = *open(0);
  Slab slab = *owner->create_slab(2 * kGranule);
  Mapping mapping =
      *importer->map(*owner->export_slab(slab, Access::kReadOnly), 2 * kGranule, Access::kReadOnly);
  slab.reset();
  const absl::Status early = owner->create_slab(kGranule).status();
  EXPECT_EQ(error_code(early), ErrorCode::kResourceExhausted);
  EXPECT_GT(error_detail(early).retry_after_ms, 0);
  mapping.reset();
  EXPECT_TRUE(owner->create_slab(kGranule).ok());
}

TEST_F(DriverDeviceTest, memory_is_asked_for_again_while_importers_let_go) {
  configure("vram=4194304");
  const auto owner = *open(8 * kGranule);
  Slab slab = *owner->create_slab(2 * kGranule);
  Fd held = *owner->export_slab(slab, Access::kReadOnly);
  slab.reset();
  // Lets go when the owner has been refused twice.
  std::thread engine([&held] {
    while (fakecuda_calls("cuMemCreate") < 3) std::this_thread::yield();
    held.reset();
  });
  EXPECT_TRUE(owner->create_slab(kGranule).ok());
  engine.join();
}

TEST_F(DriverDeviceTest, a_descriptor_that_nobody_closes_keeps_its_memory) {
  configure("vram=2097152");
  const auto owner = *open(8 * kGranule);
  Slab slab = *owner->create_slab(kGranule);
  Fd leaked = *owner->export_slab(slab, Access::kReadOnly);
  slab.reset();
  EXPECT_FALSE(owner->create_slab(kGranule).ok());
  leaked.reset();
  EXPECT_TRUE(owner->create_slab(kGranule).ok());
}

TEST_F(DriverDeviceTest, a_slab_of_another_gpu_is_refused) {
  configure("devices=2");
  const auto owner = *open(kGranule, "GPU-66616b65-6375-6461-0000-000000000000");
  const auto importer = *open(0, "GPU-66616b65-6375-6461-0000-000000000001");
  const Slab slab = *owner->create_slab(kGranule);
  const absl::Status refused =
      importer->map(*owner->export_slab(slab, Access::kReadOnly), kGranule, Access::kReadOnly)
          .status();
  EXPECT_EQ(error_code(refused), ErrorCode::kInvalidArgument);
  EXPECT_NE(error_detail(refused).todo.find("see the same GPU"), std::string::npos);
}

TEST_F(DriverDeviceTest, a_descriptor_of_something_else_is_refused_in_words) {
  const auto importer = *open(0);
  Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const absl::Status refused = importer->map(std::move(null), kGranule, Access::kReadOnly).status();
  EXPECT_EQ(error_code(refused), ErrorCode::kInvalidArgument);
  EXPECT_NE(error_detail(refused).there.find("no slab, or one of another size"), std::string::npos);
}

TEST_F(DriverDeviceTest, a_sticky_error_loses_the_device_and_nothing_else) {
  const auto owner = *open(2 * kGranule);
  const auto importer = *open(0);
  const Slab slab = *owner->create_slab(kGranule);
  const Mapping read_only =
      *importer->map(*owner->export_slab(slab, Access::kReadOnly), kGranule, Access::kReadOnly);
  // A write through a read-only mapping breaks the context, as on a GPU.
  const absl::Status lost =
      move(*importer, {.kind = MoveKind::kZero, .to = read_only.address(), .bytes = 64});
  EXPECT_EQ(error_code(lost), ErrorCode::kDeviceLost);
  EXPECT_NE(error_detail(lost).todo.find("restart this process"), std::string::npos);
  EXPECT_EQ(error_code(importer->health()), ErrorCode::kDeviceLost);
  std::vector<std::byte> bytes(64);
  EXPECT_EQ(error_code(move(*importer, {.from = slab.address(), .to = bytes.data(), .bytes = 64})),
            ErrorCode::kDeviceLost);
}

TEST_F(DriverDeviceTest, a_lost_device_makes_no_slabs) {
  configure("sticky=cuMemsetD8Async:2");
  const auto owner = *open(4 * kGranule);
  const Slab slab = *owner->create_slab(kGranule);
  EXPECT_EQ(error_code(owner->create_slab(kGranule).status()), ErrorCode::kDeviceLost);
  EXPECT_EQ(error_code(owner->create_slab(kGranule).status()), ErrorCode::kDeviceLost);
  EXPECT_EQ(owner->used_bytes(), kGranule);
}

TEST_F(DriverDeviceTest, moves_of_many_chunks_arrive_whole_on_every_schedule) {
  constexpr uint64_t kBytes = 7 * kGranule + 4096 + 3;  // four chunks, the last one odd
  const Bytes bytes = pattern(1, kBytes);
  for (int seed = 1; seed <= 5; ++seed) {
    configure("seed=" + std::to_string(seed));
    const auto owner = *open(16 * kGranule);
    const Slab slab = *owner->create_slab(16 * kGranule);
    Completions completions;
    const auto mover = *owner->create_mover({}, completions.callback());
    Bytes back(kBytes);
    std::byte* there = slab.address() + 8 * kGranule;
    ASSERT_TRUE(mover->submit({.from = bytes.data(), .to = slab.address(), .bytes = kBytes}).ok());
    ASSERT_TRUE(mover
                    ->submit({.from = slab.address(),
                              .to = there,
                              .bytes = kBytes,
                              .checksum = ChecksumMode::kTake})
                    .ok());
    ASSERT_TRUE(mover->submit({.from = there, .to = back.data(), .bytes = kBytes}).ok());
    const auto done = completions.await(3);
    EXPECT_EQ(done[1].checksum, checksum_of(bytes));
    EXPECT_EQ(back, bytes);
  }
}

// The schedules are worth something only if they find a wait that somebody forgot. The fake plays
// the program that forgot it; a copy that came too early shows poison or old bytes.
TEST_F(DriverDeviceTest, schedules_find_a_forgotten_wait) {
  for (const char* wait : {"cuEventSynchronize", "cuStreamSynchronize"}) {
    int found = 0;
    for (int seed = 1; seed <= 20; ++seed) {
      configure(std::string("late_us=2000000 skip=") + wait + " seed=" + std::to_string(seed));
      const Bytes bytes = pattern(static_cast<uint64_t>(seed), kGranule);
      Bytes back(kGranule);
      {
        const auto owner = *open(kGranule);
        const Slab slab = *owner->create_slab(kGranule);
        // Two movers, so that neither stream nor buffers keep the order by chance.
        Completions completions;
        const auto writer = *owner->create_mover({}, completions.callback());
        const auto reader = *owner->create_mover({}, completions.callback());
        EXPECT_TRUE(
            writer->submit({.from = bytes.data(), .to = slab.address(), .bytes = kGranule}).ok());
        completions.await(1);
        EXPECT_TRUE(
            reader->submit({.from = slab.address(), .to = back.data(), .bytes = kGranule}).ok());
        completions.await(2);
      }
      found += back != bytes ? 1 : 0;
      fakecuda_forget();  // what was broken meanwhile
    }
    EXPECT_GE(found, 10) << wait;
  }
}

}  // namespace
}  // namespace memdecay::cuda
