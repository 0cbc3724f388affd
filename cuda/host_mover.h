// HostMover: the mover port by memcpy on a worker thread, with the checksum fused in.
// Thread: see thread_mover.h.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "cuda/mover.h"

namespace memdecay::cuda {

// invalid_argument: a capacity of 0 or no callback.
absl::StatusOr<std::unique_ptr<Mover>> create_host_mover(MoverOptions options,
                                                         MoverCallback completed);

// One move between places that the CPU may touch, on the calling thread. The request must be valid
// (validate_move).
MoveCompletion move_on_cpu(const MoveRequest& request);

}  // namespace memdecay::cuda
