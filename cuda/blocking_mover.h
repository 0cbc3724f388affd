// BlockingMover: a mover used one move at a time, by callers that wait for it: clearing a slab
// before anybody has it, a page's checksum at its seal. The mover is made at the first move, so
// that who never moves has no thread and no CUDA context. Thread: any; moves are carried one after
// another, and a caller waits behind the others. It blocks for as long as the device takes. Not
// here: copies in the background (mover.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cuda/mover.h"

namespace memdecay::cuda {

class BlockingMover {
 public:
  using Make = std::function<absl::StatusOr<std::unique_ptr<Mover>>(MoverOptions, MoverCallback)>;

  // What `make` uses outlives it.
  explicit BlockingMover(Make make) : make_(std::move(make)) {}
  BlockingMover(const BlockingMover&) = delete;
  BlockingMover& operator=(const BlockingMover&) = delete;

  MoveCompletion run(const MoveRequest& request);
  // Zeroes; 0 bytes: nothing to do.
  absl::Status zero(std::byte* address, uint64_t bytes);

 private:
  struct Answer {
    absl::Mutex mutex;
    std::optional<MoveCompletion> done ABSL_GUARDED_BY(mutex);
    bool there() const ABSL_SHARED_LOCKS_REQUIRED(mutex) { return done.has_value(); }
  };

  const Make make_;
  absl::Mutex one_at_a_time_;
  Answer answer_;
  // Last: its thread answers.
  std::unique_ptr<Mover> mover_ ABSL_GUARDED_BY(one_at_a_time_);
};

}  // namespace memdecay::cuda
