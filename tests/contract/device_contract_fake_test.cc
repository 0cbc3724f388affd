// The device contract on DriverDevice over the fake driver (tests/support/fakecuda): three drivers,
// twenty schedules of late and reordered work each. After every test the fake must have nothing
// left and no rule broken.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cuda/driver_device.h"
#include "tests/contract/device_contract.h"
#include "tests/support/fakecuda/control.h"

namespace memdecay::cuda {
namespace {

constexpr int kSchedules = 20;

std::unique_ptr<Device> create_on_fake(uint64_t limit_bytes) {
  return *create_driver_device({.limit_bytes = limit_bytes, .library = FAKECUDA_LIBRARY});
}

std::vector<DeviceUnderTest> schedules() {
  std::vector<DeviceUnderTest> all;
  for (const int version : {12040, 12080, 13000}) {
    for (int seed = 1; seed <= kSchedules; ++seed) {
      const std::string words =
          "version=" + std::to_string(version) + " seed=" + std::to_string(seed);
      all.push_back({.name = "fake",
                     .create = create_on_fake,
                     .begin = [words] { ASSERT_EQ(fakecuda_configure(words.c_str()), nullptr); },
                     .end = [] { EXPECT_STREQ(fakecuda_leaks(), ""); }});
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<DeviceUnderTest>& info) {
  const size_t version = info.index / kSchedules;
  const char* const versions[] = {"v12040", "v12080", "v13000"};
  return std::string(versions[version]) + "_seed" + std::to_string(info.index % kSchedules + 1);
}

INSTANTIATE_TEST_SUITE_P(Driver, DeviceContract, ::testing::ValuesIn(schedules()), name_of);

}  // namespace
}  // namespace memdecay::cuda
