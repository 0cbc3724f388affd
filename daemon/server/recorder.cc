// See recorder.h.
#include "daemon/server/recorder.h"

#include <utility>

#include "proto/contract/error.h"

namespace memdecay::server {

absl::Status Recorder::begin(ledger::Ledger& ledger, Instant now, ledger::TapeOptions options,
                             TapeQueue& queue) {
  if (queue_ != nullptr) {
    return make_error(ErrorCode::kBusy, "a recording",
                      "another one runs, and there is one at a time", "wait for it, or end it");
  }
  ledger.start_tape(now, std::move(options));
  queue_ = &queue;
  return absl::OkStatus();
}

void Recorder::end(ledger::Ledger& ledger, const TapeQueue& queue) {
  if (queue_ != &queue) return;
  ledger.stop_tape();
  queue_ = nullptr;
}

}  // namespace memdecay::server
