// A build without CUDA's headers says so, in words that tell what to do.
#include <gtest/gtest.h>

#include "cuda/driver_device.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {
namespace {

TEST(DriverAbsent, a_build_without_headers_refuses_and_says_what_to_do) {
  EXPECT_EQ(driver_support(), DriverSupport::kLeftOut);
  const absl::Status refused = create_driver_device({}).status();
  EXPECT_EQ(error_code(refused), ErrorCode::kUnsupported);
  EXPECT_NE(error_detail(refused).todo.find("device.kind: host"), std::string::npos);
}

}  // namespace
}  // namespace memdecay::cuda
