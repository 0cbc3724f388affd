// DriverCarrier: how a mover carries bytes to, from and on a GPU. It has what a mover has and
// nobody else in the process: a context, made at the first move; a stream of its own; two pinned
// buffers. Host memory is copied through the buffers in chunks of kChunkBytes, one chunk travelling
// while the other is filled or emptied: at most two are in flight, since copy engines serve first
// come, first served, and an engine that decodes waits behind whatever is queued. The driver is
// never given pageable memory. A move is answered when the stream has done it.
// Thread: a ThreadMover's worker. After a failure the stream is drained before a buffer is used
// again; after a sticky one every move fails with device_lost.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/driver/address_arena.h"
#include "cuda/driver/gpu.h"
#include "cuda/thread_mover.h"

namespace memdecay::cuda {

inline constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

// The gpu outlives it. Addresses in `slabs` are device memory, whatever the driver says; of others
// it is asked (another Device of this process may have mapped them).
std::unique_ptr<Carrier> create_driver_carrier(const Gpu& gpu, AddressRange slabs);

}  // namespace memdecay::cuda
