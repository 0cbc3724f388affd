// DriverDevice: the device port on a GPU, by the CUDA driver. A slab is one allocation of the
// driver's virtual memory management, shared as a POSIX descriptor and mapped whole into one range
// of device addresses. Creating, sharing and mapping need no CUDA context; movers make one at their
// first move. A read-only mapping stops accidents, not malice (ReadOnlyGuard::kMapping).
// In a build without CUDA's headers create_driver_device says so; nothing else changes.
// Thread: see device.h. Errors: a sticky CUDA error makes the device lost, never the process dead.
// Not here: how the driver is called (cuda/driver/).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cuda/device.h"

namespace memdecay::cuda {

inline constexpr char kDriverLibrary[] = "libcuda.so.1";

struct DriverDeviceOptions {
  std::string uuid;                      // "GPU-…", "MIG-…"; empty: the only one there is
  uint64_t limit_bytes = 0;              // 0: this process only imports
  std::string library = kDriverLibrary;  // found as dlopen finds it
};

// Whether this program was built with CUDA's headers.
enum class DriverSupport : uint8_t { kBuiltIn, kLeftOut };
DriverSupport driver_support();

// unsupported: this build, no driver, too old a driver, a GPU that cannot; not_found: no such
// device; invalid_argument: a GPU divided into MIG instances; busy: its compute mode.
absl::StatusOr<std::unique_ptr<Device>> create_driver_device(const DriverDeviceOptions& options);

// The UUID of the GPU whose memory a slab's descriptor is; the descriptor stays the caller's.
// invalid_argument: no such memory, or of a GPU that this process does not see.
absl::StatusOr<std::string> driver_device_of(const Fd& slab,
                                             const std::string& library = kDriverLibrary);

}  // namespace memdecay::cuda
