// Opening a device: every way in which a machine can be wrong, each a typed error that says what to
// do, and none of them costs a context.
#include <string>

#include "proto/contract/error.h"
#include "tests/support/fakecuda/fixture.h"

namespace memdecay::cuda {
namespace {

// "fakecuda" in hex; the last digits are the instance and the ordinal.
constexpr char kFirst[] = "GPU-66616b65-6375-6461-0000-000000000000";
constexpr char kSecond[] = "GPU-66616b65-6375-6461-0000-000000000001";
constexpr char kInstance[] = "MIG-66616b65-6375-6461-0000-000000000100";

class DriverOpen : public OnFakeDriver {
 protected:
  static void expect_refused(const std::string& words, const std::string& uuid, ErrorCode code,
                             const std::string& part_of_todo) {
    configure(words);
    const absl::Status refused = open(kGranule, uuid).status();
    EXPECT_EQ(error_code(refused), code) << words << ": " << refused;
    EXPECT_NE(error_detail(refused).todo.find(part_of_todo), std::string::npos) << refused;
  }
};

TEST_F(DriverOpen, the_only_device_needs_no_name_and_is_called_by_uuid) {
  const auto device = *open(kGranule);
  EXPECT_EQ(device->properties().uuid, kFirst);
  EXPECT_EQ(device->properties().kind, DeviceKind::kCuda);
  EXPECT_EQ(device->properties().granularity_bytes, kGranule);
  EXPECT_EQ(device->properties().read_only_guard, ReadOnlyGuard::kMapping);
  EXPECT_EQ(fakecuda_calls("cuDevicePrimaryCtxRetain"), 0u);
}

TEST_F(DriverOpen, a_device_is_found_by_uuid_among_several) {
  configure("devices=2");
  EXPECT_EQ((*open(kGranule, kSecond))->properties().uuid, kSecond);
}

TEST_F(DriverOpen, several_devices_and_no_uuid_is_no_choice) {
  expect_refused("devices=2", "", ErrorCode::kNotFound, "CUDA_VISIBLE_DEVICES");
}

TEST_F(DriverOpen, a_wrong_uuid_is_answered_with_those_there_are) {
  configure("devices=2");
  const absl::Status refused = open(kGranule, "GPU-none").status();
  EXPECT_EQ(error_code(refused), ErrorCode::kNotFound);
  EXPECT_NE(error_detail(refused).there.find(kSecond), std::string::npos);
}

TEST_F(DriverOpen, a_mig_instance_is_found_by_its_own_uuid) {
  configure("mig=1");
  EXPECT_EQ((*open(kGranule, kInstance))->properties().uuid, kInstance);
}

TEST_F(DriverOpen, the_parent_of_a_mig_instance_is_refused) {
  expect_refused("mig=1", kFirst, ErrorCode::kInvalidArgument, "CUDA_VISIBLE_DEVICES");
}

TEST_F(DriverOpen, no_driver) {
  const absl::Status refused = create_driver_device({.library = "libnosuchcuda.so.1"}).status();
  EXPECT_EQ(error_code(refused), ErrorCode::kUnsupported);
  EXPECT_NE(error_detail(refused).todo.find("device.kind: host"), std::string::npos);
}

TEST_F(DriverOpen, a_library_that_is_no_driver) {
  const absl::Status refused = create_driver_device({.library = "libm.so.6"}).status();
  EXPECT_EQ(error_code(refused), ErrorCode::kUnsupported);
  EXPECT_NE(error_detail(refused).todo.find("update the NVIDIA driver"), std::string::npos);
}

TEST_F(DriverOpen, a_driver_without_a_symbol_is_too_old_and_the_symbol_is_named) {
  configure("without=cuMemCreate version=11040");
  const absl::Status refused = open(kGranule).status();
  EXPECT_EQ(error_code(refused), ErrorCode::kUnsupported);
  EXPECT_NE(error_detail(refused).asked.find("cuMemCreate as of CUDA 10.2"), std::string::npos);
  EXPECT_NE(error_detail(refused).there.find("CUDA 11.4"), std::string::npos);
}

TEST_F(DriverOpen, no_gpu) {
  expect_refused("no_device=1", "", ErrorCode::kNotFound, "no GPU is visible");
}

TEST_F(DriverOpen, exclusive_mode_needs_mps) {
  expect_refused("mode=exclusive", "", ErrorCode::kBusy, "nvidia-smi -c DEFAULT");
  configure("mode=exclusive mps=1");
  EXPECT_TRUE(open(kGranule).ok());
}

TEST_F(DriverOpen, prohibited_mode_is_refused) {
  expect_refused("mode=prohibited mps=1", "", ErrorCode::kBusy, "nvidia-smi -c DEFAULT");
}

TEST_F(DriverOpen, a_gpu_without_shareable_memory_is_refused) {
  expect_refused("no_vmm=1", "", ErrorCode::kUnsupported, "device.kind: host");
  expect_refused("no_posix_fd=1", "", ErrorCode::kUnsupported, "device.kind: host");
}

TEST_F(DriverOpen, driver_and_kernel_module_of_different_versions) {
  expect_refused("fail=cuInit:1:803", "", ErrorCode::kUnsupported, "reboot");
}

}  // namespace
}  // namespace memdecay::cuda
