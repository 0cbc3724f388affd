// What stands in for cuda/driver/ where the program was built without CUDA's headers.
#include "cuda/driver_device.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {

namespace {

absl::Status left_out(const char* asked) {
  return make_error(ErrorCode::kUnsupported, asked, "this program was built without CUDA's headers",
                    "install the CUDA 13 headers and configure again, or use device.kind: host");
}

}  // namespace

DriverSupport driver_support() { return DriverSupport::kLeftOut; }

absl::StatusOr<std::unique_ptr<Device>> create_driver_device(const DriverDeviceOptions&) {
  return left_out("a CUDA device");
}

absl::StatusOr<std::string> driver_device_of(const Fd&, const std::string&) {
  return left_out("map a descriptor that is no sealed memfd");
}

}  // namespace memdecay::cuda
