// Events of a recording between the reactor, which must not wait, and the thread that writes them.
// Bounded in bytes: what does not fit is left out and counted, and a `lost` event stands where it
// would have been.
// Thread: put() on the reactor's, take() on the writer's; a leaf mutex is held for moves of
// pointers only. The writer looks every limits::kTapeBeat, so that put() rings a sleeping thread
// only once the queue is half full. Not here: what is recorded (ledger/tape.h), gRPC
// (record_call.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/mailbox.h"
#include "daemon/policy/trace/event.h"

namespace memdecay::server {

class TapeQueue {
 public:
  // `wake` outlives the queue.
  TapeQueue(size_t most_bytes, base::Wake& wake) : most_bytes_(most_bytes), wake_(wake) {}

  void put(std::vector<trace::Event>& events);
  // Everything there is; with it the events that were left out since the last `lost`.
  std::vector<trace::Event> take();
  uint64_t lost() const;

 private:
  void note_lost(uint64_t at_ms) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_bytes_;
  base::Wake& wake_;
  mutable absl::Mutex mutex_;
  std::vector<trace::Event> events_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t lost_told_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_ms_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace memdecay::server
