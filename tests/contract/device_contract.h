// What every device behind cuda/device.h must do, as a suite that any implementation instantiates:
//   INSTANTIATE_TEST_SUITE_P(Host, DeviceContract, ::testing::Values(DeviceUnderTest{...}));
// Device memory is read and written through movers only, so that it need not be CPU memory.
// Not here: what only one device promises (tests/unit/cuda).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "cuda/device.h"
#include "tests/contract/completions.h"

namespace memdecay::cuda {

struct DeviceUnderTest {
  const char* name;
  // A fresh device that owns at most limit_bytes; 0: one that only imports.
  std::function<std::unique_ptr<Device>(uint64_t limit_bytes)> create;
  // Before the first device of a test, and after the last has gone; empty: nothing to do.
  std::function<void()> begin = nullptr;
  std::function<void()> end = nullptr;
};

class DeviceContract : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  static constexpr uint64_t kGranules = 8;

  void SetUp() override;
  void TearDown() override;

  Slab slab(uint64_t granules);
  // Through a mover of `device_`.
  void write(std::byte* to, const Bytes& bytes);
  Bytes read(const std::byte* from, uint64_t bytes);

  uint64_t granule_ = 0;
  std::unique_ptr<Device> device_;    // owns up to kGranules
  std::unique_ptr<Device> importer_;  // another process's device, in this process
};

}  // namespace memdecay::cuda
