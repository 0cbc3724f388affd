// AnyDevice: the descriptor decides what it is, host memory or whose GPU's.
#include "cuda/any_device.h"

#include <fcntl.h>

#include "cuda/blocking_mover.h"
#include "cuda/host_device.h"
#include "proto/contract/error.h"
#include "tests/contract/completions.h"
#include "tests/support/fakecuda/fixture.h"

namespace memdecay::cuda {
namespace {

class AnyDeviceTest : public OnFakeDriver {
 protected:
  // Through a mover of `device`, as a client does it.
  static Bytes read(Device& device, const Mapping& mapping, uint64_t bytes) {
    BlockingMover mover([&device](MoverOptions options, MoverCallback completed) {
      return device.create_mover(options, std::move(completed));
    });
    Bytes out(bytes);
    EXPECT_TRUE(
        mover.run({.from = mapping.address(), .to = out.data(), .bytes = bytes}).status.ok());
    return out;
  }
};

TEST_F(AnyDeviceTest, host_memory_is_mapped_without_a_driver) {
  const auto owner = *create_host_device({.limit_bytes = 2 * kGranule});
  const Slab slab = *owner->create_slab(kGranule);
  const auto any = *create_any_device("libnosuchcuda.so.1");
  const Mapping mapping =
      *any->map(*owner->export_slab(slab, Access::kReadOnly), kGranule, Access::kReadOnly);
  EXPECT_EQ(mapping.host_bytes().size(), kGranule);
}

TEST_F(AnyDeviceTest, a_gpus_memory_says_whose_it_is) {
  configure("devices=2");
  const auto owner = *create_driver_device({.uuid = "GPU-66616b65-6375-6461-0000-000000000001",
                                            .limit_bytes = 2 * kGranule,
                                            .library = FAKECUDA_LIBRARY});
  const Slab slab = *owner->create_slab(kGranule);
  const auto any = *create_any_device(FAKECUDA_LIBRARY);
  const Mapping mapping =
      *any->map(*owner->export_slab(slab, Access::kReadOnly), kGranule, Access::kReadOnly);
  EXPECT_EQ(any->properties().uuid, owner->properties().uuid);
  EXPECT_TRUE(mapping.host_bytes().empty());
  EXPECT_EQ(read(*any, mapping, kGranule), Bytes(kGranule));
}

TEST_F(AnyDeviceTest, a_second_gpu_is_refused) {
  configure("devices=2");
  const auto any = *create_any_device(FAKECUDA_LIBRARY);
  const auto first = *open(kGranule, "GPU-66616b65-6375-6461-0000-000000000000");
  const auto second = *open(kGranule, "GPU-66616b65-6375-6461-0000-000000000001");
  const Slab one = *first->create_slab(kGranule);
  const Slab two = *second->create_slab(kGranule);
  const Mapping mapped =
      *any->map(*first->export_slab(one, Access::kReadOnly), kGranule, Access::kReadOnly);
  const absl::Status refused =
      any->map(*second->export_slab(two, Access::kReadOnly), kGranule, Access::kReadOnly).status();
  EXPECT_EQ(error_code(refused), ErrorCode::kUnsupported);
}

TEST_F(AnyDeviceTest, what_is_neither_is_refused_and_it_owns_nothing) {
  const auto any = *create_any_device(FAKECUDA_LIBRARY);
  Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(error_code(any->map(std::move(null), kGranule, Access::kReadOnly).status()),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(any->map(Fd(), kGranule, Access::kReadOnly).status()),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(any->create_slab(kGranule).status()), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace memdecay::cuda
