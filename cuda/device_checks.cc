// See device_checks.h.
#include "cuda/device_checks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {

absl::Status check_new_slab(const DeviceProperties& properties, uint64_t used_bytes,
                            uint64_t bytes) {
  const std::string asked = absl::StrCat("a slab of ", bytes, " bytes");
  if (bytes == 0 || bytes % properties.granularity_bytes != 0 ||
      bytes > static_cast<uint64_t>(INT64_MAX)) {
    return make_error(ErrorCode::kInvalidArgument, asked,
                      absl::StrCat("the granularity is ", properties.granularity_bytes),
                      "use a multiple of the granularity");
  }
  if (bytes > properties.limit_bytes - used_bytes) {
    return make_error(ErrorCode::kResourceExhausted, asked,
                      absl::StrCat(used_bytes, " of ", properties.limit_bytes, " bytes are used"),
                      "raise device.bytes or free a slab");
  }
  return absl::OkStatus();
}

absl::Status check_scrub(const Slab& slab, uint64_t offset, uint64_t bytes) {
  if (offset <= slab.bytes() && bytes <= slab.bytes() - offset) return absl::OkStatus();
  return make_error(ErrorCode::kOutOfRange, absl::StrCat("scrub ", bytes, " bytes at ", offset),
                    absl::StrCat("the slab has ", slab.bytes()));
}

}  // namespace memdecay::cuda
