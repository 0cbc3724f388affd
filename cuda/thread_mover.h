// ThreadMover: the mover port by one worker thread and a carrier, which knows how bytes are moved.
// The queue, its bound, cancelling and the order of completions are here, for every device alike.
// Thread: see mover.h; the carrier is used, and destroyed, on the worker's thread alone. A mutex
// guards the queue and is never held while carrying or calling back.
// Invariant: accepted moves = waiting + the one that runs <= queue_capacity.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "cuda/mover.h"

namespace memdecay::cuda {

class Carrier {
 public:
  virtual ~Carrier() = default;
  // One move, from beginning to end. The request is valid (validate_move).
  virtual MoveCompletion carry_out(const MoveRequest& request) = 0;
};

// invalid_argument: a capacity of 0 or no callback.
absl::StatusOr<std::unique_ptr<Mover>> create_thread_mover(MoverOptions options,
                                                           MoverCallback completed,
                                                           std::unique_ptr<Carrier> carrier);

// invalid_argument: no bytes, null or overlapping ranges.
absl::Status validate_move(const MoveRequest& request);

// The completion of a move whose bytes have this checksum: data_loss if another was expected.
MoveCompletion complete_with(const MoveRequest& request, const Checksum& checksum);

}  // namespace memdecay::cuda
