// Anonymous files whose size is fixed for ever: what the host device's slabs and the timeline pages
// are made of. Two processes map one; neither can shorten it under the other (SIGBUS).
// Thread: free functions, any. Failures leave their reason in errno.
// Not here: slabs (host_device.h), timeline pages (timeline.h), what an error means to a user.
#pragma once

#include <cstdint>
#include <optional>

#include "cuda/device.h"

namespace memdecay::cuda {

enum class Prefault : uint8_t { kNo, kYes };  // kYes: memory and page tables are taken now

// Null on failure. `name` is what /proc/PID/maps shows.
Fd create_sealed_memory(const char* name, uint64_t bytes, Prefault prefault);

// A memfd of just that size which nobody can resize.
bool is_sealed_memory(int fd, uint64_t bytes);

// The whole of it, shared, not inherited by a forked child.
std::optional<Mapping> map_sealed_memory(int fd, uint64_t bytes, Access access, Prefault prefault);

// A descriptor that cannot be mapped writable (a duplicate would share the writable open file).
Fd reopen_read_only(int fd);

}  // namespace memdecay::cuda
