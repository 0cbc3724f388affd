// HostMover: the mover port by one worker thread and memcpy, with the checksum fused in.
// Thread: see mover.h; the worker is the only thread that copies. A mutex guards the queue alone
// and is never held while copying or calling back.
// Invariant: accepted moves = waiting + the one that runs <= queue_capacity.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "cuda/mover.h"

namespace memdecay::cuda {

// invalid_argument: a capacity of 0 or no callback.
absl::StatusOr<std::unique_ptr<Mover>> create_host_mover(MoverOptions options,
                                                         MoverCallback completed);

// One move, carried out on the calling thread: what the worker does for each. Also for simulation,
// which wants the same arithmetic without a thread. The request must be valid (validate_move).
MoveCompletion carry_out(const MoveRequest& request);
// invalid_argument: no bytes, null or overlapping ranges.
absl::Status validate_move(const MoveRequest& request);

}  // namespace memdecay::cuda
