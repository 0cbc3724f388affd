// AnyDevice: the importing side of whichever device the daemon has. A descriptor says itself what
// it is: a sealed memfd is host memory, anything else is tried as a GPU's, and the driver says of
// which GPU. So an engine names no device and cannot name the wrong one. The driver is loaded when
// the first such descriptor comes. Thread: see device.h. It owns nothing: create_slab, export_slab
// and scrub are refused. Invariant: at most one GPU; a second one is refused (an engine has a
// process a GPU).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cuda/device.h"
#include "cuda/driver_device.h"

namespace memdecay::cuda {

absl::StatusOr<std::unique_ptr<Device>> create_any_device(std::string library = kDriverLibrary);

}  // namespace memdecay::cuda
