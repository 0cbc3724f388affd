// The device contract on whichever driver this machine has. Not a ctest test: run.sh runs it where
// there is a GPU.
#include <memory>
#include <string>

#include "cuda/driver_device.h"
#include "tests/contract/device_contract.h"

namespace memdecay::cuda {
namespace {

std::unique_ptr<Device> create_on_gpu(uint64_t limit_bytes) {
  return *create_driver_device({.limit_bytes = limit_bytes});
}

INSTANTIATE_TEST_SUITE_P(Gpu, DeviceContract,
                         ::testing::Values(DeviceUnderTest{.name = "libcuda",
                                                           .create = create_on_gpu}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace memdecay::cuda
