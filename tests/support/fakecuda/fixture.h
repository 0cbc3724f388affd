// A test that runs on the fake driver: configured before, and after the test nothing is left in it
// and no rule of the driver's was broken.
// Thread: the test's. Not here: which words there are (control.h).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cuda/driver_device.h"
#include "tests/support/fakecuda/control.h"

namespace memdecay::cuda {

inline constexpr uint64_t kGranule = uint64_t{2} << 20;

class OnFakeDriver : public testing::Test {
 protected:
  void SetUp() override { configure(""); }
  void TearDown() override { EXPECT_STREQ(fakecuda_leaks(), ""); }

  // The driver from now on; nothing of the one before may be alive.
  static void configure(const std::string& words) {
    const char* wrong = fakecuda_configure(words.c_str());
    ASSERT_EQ(wrong, nullptr) << wrong;
  }
  static absl::StatusOr<std::unique_ptr<Device>> open(uint64_t limit_bytes,
                                                      const std::string& uuid = {}) {
    return create_driver_device(
        {.uuid = uuid, .limit_bytes = limit_bytes, .library = fakecuda_path()});
  }
};

}  // namespace memdecay::cuda
