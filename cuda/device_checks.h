// What every device checks before it makes or scrubs a slab, in one place so that all answer alike.
// Thread: pure functions. Not here: what only one device can refuse.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cuda/device.h"

namespace memdecay::cuda {

// invalid_argument: zero, or no multiple of the granularity; resource_exhausted: the limit.
absl::Status check_new_slab(const DeviceProperties& properties, uint64_t used_bytes,
                            uint64_t bytes);
// out_of_range.
absl::Status check_scrub(const Slab& slab, uint64_t offset, uint64_t bytes);

}  // namespace memdecay::cuda
