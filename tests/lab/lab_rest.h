// When the daemon is at rest: nothing is in flight but what is held, fenced, or waits for somebody
// who has to be told to answer. By conditions alone, so that a slow machine is only slow.
// Thread: gRPC's; looks on the reactor's thread. Not here: the levers (lab_service.h).
#pragma once

#include "absl/status/status.h"
#include "memdecay/v1/lab.pb.h"
#include "tests/lab/lab_service.h"

namespace memdecay::lab {

// Waits for it; `deadline` if that does not come about. An engine in request.engines that owes an
// answer for longer than a few seconds is not waited for any more.
absl::Status wait_for_rest(const Bench& bench, const v1::SettleRequest& request,
                           v1::SettleResponse& response);

}  // namespace memdecay::lab
