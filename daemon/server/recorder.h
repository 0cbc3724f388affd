// The one recording that may run, as the reactor sees it: which queue gets the tape's events.
// Thread: begin(), end() and stepped() on the reactor's (the first two in an inspection); stop()
// and stopping() on any. Invariant: the queue of a recording is not touched after its end(). Not
// here: the stream and its thread (record_call.h).
#pragma once

#include <atomic>

#include "absl/status/status.h"
#include "daemon/ledger/ledger.h"
#include "daemon/reactor/reactor.h"
#include "daemon/server/tape_queue.h"

namespace memdecay::server {

class Recorder {
 public:
  // busy: one runs already.
  absl::Status begin(ledger::Ledger& ledger, Instant now, ledger::TapeOptions options,
                     TapeQueue& queue);
  void end(ledger::Ledger& ledger, const TapeQueue& queue);
  void stepped(const reactor::StepReport& step) {
    if (queue_ != nullptr) queue_->put(step.tape);
  }

  // The daemon stops: recordings end in good order.
  void stop() { stopping_ = true; }
  bool stopping() const { return stopping_; }

 private:
  TapeQueue* queue_ = nullptr;
  std::atomic<bool> stopping_{false};
};

}  // namespace memdecay::server
