// The device contract on the host device, with the granularity of the machine's pages and with that
// of a GPU.
#include <memory>
#include <string>

#include "cuda/host_device.h"
#include "tests/contract/device_contract.h"

namespace memdecay::cuda {
namespace {

std::unique_ptr<Device> create_small(uint64_t limit_bytes) {
  return *create_host_device({.limit_bytes = limit_bytes});
}

// Nothing above the port may depend on small slabs.
std::unique_ptr<Device> create_coarse(uint64_t limit_bytes) {
  return *create_host_device({.limit_bytes = limit_bytes, .granularity_bytes = uint64_t{2} << 20});
}

INSTANTIATE_TEST_SUITE_P(Host, DeviceContract,
                         ::testing::Values(DeviceUnderTest{"memfd", create_small},
                                           DeviceUnderTest{"memfd_2MiB", create_coarse}),
                         [](const auto& device) { return std::string(device.param.name); });

}  // namespace
}  // namespace memdecay::cuda
