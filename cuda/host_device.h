// HostDevice: the device port on plain memory. A slab is a memfd: sealed against resizing (a peer
// cannot make us fault by truncating it), allocated and mapped at once (no later fault for want of
// memory), limited in total, not inherited by forks, and handed to non-writers as a descriptor that
// was opened read-only. It carries all protocol and cache tests, and real serving on CPUs.
// Thread: see device.h. Linux only. Invariant: used_bytes() == bytes of living slabs <= limit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cuda/device.h"

namespace memdecay::cuda {

struct HostDeviceOptions {
  uint64_t limit_bytes = 0;        // 0: this process only imports (a client)
  std::string uuid = "host";       // names the device in logs and metrics
  uint64_t granularity_bytes = 0;  // 0: the machine's page size; else a multiple of it
};

// invalid_argument: a granularity that is no multiple of the page size.
absl::StatusOr<std::unique_ptr<Device>> create_host_device(const HostDeviceOptions& options);

}  // namespace memdecay::cuda
