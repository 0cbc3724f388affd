// See blocking_mover.h.
#include "cuda/blocking_mover.h"

#include <utility>

namespace memdecay::cuda {

MoveCompletion BlockingMover::run(const MoveRequest& request) {
  absl::MutexLock turn(&one_at_a_time_);
  if (mover_ == nullptr) {
    auto made = make_({.queue_capacity = 1}, [this](const MoveCompletion& done) {
      absl::MutexLock lock(&answer_.mutex);
      answer_.done = done;
    });
    if (!made.ok()) return {.id = request.id, .status = made.status()};
    mover_ = *std::move(made);
  }
  if (absl::Status submitted = mover_->submit(request); !submitted.ok()) {
    return {.id = request.id, .status = std::move(submitted)};
  }
  absl::MutexLock lock(&answer_.mutex);
  answer_.mutex.Await(absl::Condition(&answer_, &Answer::there));
  return *std::exchange(answer_.done, std::nullopt);
}

absl::Status BlockingMover::zero(std::byte* address, uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return run({.kind = MoveKind::kZero, .to = address, .bytes = bytes}).status;
}

}  // namespace memdecay::cuda
