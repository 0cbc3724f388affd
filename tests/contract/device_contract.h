// What every device behind cuda/device.h must do, as a suite that any implementation instantiates:
//   INSTANTIATE_TEST_SUITE_P(Host, DeviceContract, ::testing::Values(DeviceUnderTest{...}));
// Device memory is read and written through movers only, so that it need not be CPU memory.
// Not here: what only one device promises (tests/unit/cuda).
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/device.h"

namespace memdecay::cuda {

using Bytes = std::vector<std::byte>;

struct DeviceUnderTest {
  const char* name;
  // A fresh device that owns at most limit_bytes; 0: one that only imports.
  std::function<std::unique_ptr<Device>(uint64_t limit_bytes)> create;
};

// Collects completions; can hold the mover's thread inside a callback.
class Completions {
 public:
  MoverCallback callback();
  void hold();     // the next callback waits …
  void release();  // … until here
  void await_held();
  std::vector<MoveCompletion> await(size_t count);
  size_t count();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<MoveCompletion> done_;
  bool holding_ = false;
  int held_ = 0;
};

class DeviceContract : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  static constexpr uint64_t kGranules = 8;

  void SetUp() override;

  Slab slab(uint64_t granules);
  // Through a mover of `device_`.
  void write(std::byte* to, const Bytes& bytes);
  Bytes read(const std::byte* from, uint64_t bytes);

  uint64_t granule_ = 0;
  std::unique_ptr<Device> device_;    // owns up to kGranules
  std::unique_ptr<Device> importer_;  // another process's device, in this process
};

// `bytes` numbers that depend on `key` and their place.
Bytes pattern(uint64_t key, uint64_t bytes);

}  // namespace memdecay::cuda
