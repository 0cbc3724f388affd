// The worker thread and its queue (see thread_mover.h).
#include "cuda/thread_mover.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {
namespace {

class ThreadMover final : public Mover {
 public:
  ThreadMover(MoverOptions options, MoverCallback completed, std::unique_ptr<Carrier> carrier)
      : options_(options),
        completed_(std::move(completed)),
        carrier_(std::move(carrier)),
        worker_([this] { work(); }) {}

  ~ThreadMover() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    worker_.join();
  }

  absl::Status submit(const MoveRequest& request) override {
    if (absl::Status status = validate_move(request); !status.ok()) return status;
    absl::MutexLock lock(&mutex_);
    if (stats_.in_flight >= options_.queue_capacity) {
      return make_error({.code = ErrorCode::kResourceExhausted,
                         .asked = absl::StrCat("copy ", request.id.value),
                         .there = absl::StrCat(stats_.in_flight, " copies in flight"),
                         .todo = "submit again after a completion",
                         .retry_after_ms = 1});
    }
    waiting_.push_back(request);
    ++stats_.in_flight;
    return absl::OkStatus();
  }

  CancelResult cancel(CopyId id) override {
    absl::MutexLock lock(&mutex_);
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [id](const MoveRequest& move) { return move.id == id; });
    if (found == waiting_.end()) return CancelResult::kTooLate;
    waiting_.erase(found);
    --stats_.in_flight;
    return CancelResult::kCancelled;
  }

  MoverStats stats() const override {
    absl::MutexLock lock(&mutex_);
    return stats_;
  }

 private:
  bool has_work() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !waiting_.empty();
  }

  void work() {
    while (true) {
      MoveRequest move;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &ThreadMover::has_work));
        if (stopping_) break;
        move = waiting_.front();
        waiting_.pop_front();
      }
      const MoveCompletion completion = carrier_->carry_out(move);
      {
        // Before the callback: whoever hears of the completion may submit again at once.
        absl::MutexLock lock(&mutex_);
        --stats_.in_flight;
        stats_.completed += completion.status.ok() ? 1 : 0;
        stats_.failed += completion.status.ok() ? 0 : 1;
        stats_.bytes += move.bytes;
      }
      completed_(completion);
    }
    carrier_.reset();  // here: a CUDA context is the thread's
  }

  const MoverOptions options_;
  const MoverCallback completed_;
  std::unique_ptr<Carrier> carrier_;
  mutable absl::Mutex mutex_;
  std::deque<MoveRequest> waiting_ ABSL_GUARDED_BY(mutex_);
  MoverStats stats_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread worker_;  // last: it uses all of the above
};

bool overlap(const std::byte* a, const std::byte* b, uint64_t bytes) {
  // std::less: the ranges may be of different objects.
  const std::less<> before;
  return before(a, b + bytes) && before(b, a + bytes);
}

}  // namespace

absl::Status validate_move(const MoveRequest& request) {
  const std::string asked = absl::StrCat("copy ", request.id.value);
  if (request.bytes == 0 || request.to == nullptr) {
    return make_error(ErrorCode::kInvalidArgument, asked, "no bytes or nowhere to put them");
  }
  if (request.kind == MoveKind::kZero) {
    if (request.from == nullptr && request.checksum == ChecksumMode::kNone) return absl::OkStatus();
    return make_error(ErrorCode::kInvalidArgument, asked, "zeroing has no source and no checksum");
  }
  if (request.from == nullptr || overlap(request.from, request.to, request.bytes)) {
    return make_error(ErrorCode::kInvalidArgument, asked, "no source, or it overlaps the target");
  }
  return absl::OkStatus();
}

MoveCompletion complete_with(const MoveRequest& request, const Checksum& checksum) {
  MoveCompletion done{.id = request.id, .checksum = checksum};
  if (request.checksum == ChecksumMode::kVerify && checksum != request.expected) {
    done.status = make_error(ErrorCode::kDataLoss, absl::StrCat("copy ", request.id.value),
                             "the checksum does not match", "drop this replica");
  }
  return done;
}

absl::StatusOr<std::unique_ptr<Mover>> create_thread_mover(MoverOptions options,
                                                           MoverCallback completed,
                                                           std::unique_ptr<Carrier> carrier) {
  if (options.queue_capacity == 0 || !completed) {
    return make_error(ErrorCode::kInvalidArgument, "create a mover",
                      "a queue of 0 moves or no callback");
  }
  return std::unique_ptr<Mover>(
      std::make_unique<ThreadMover>(options, std::move(completed), std::move(carrier)));
}

}  // namespace memdecay::cuda
