// The client's clock: the only place in the client that reads the machine's time.
// Thread: any. Not here: sleeping (callers wait on a condition with a deadline).
#pragma once

#include "absl/time/time.h"
#include "proto/contract/clock.h"

namespace memdecay::client {

// CLOCK_MONOTONIC.
Instant now();

// What is left until `deadline`, never negative.
absl::Duration left_until(Instant deadline);
int left_milliseconds(Instant deadline);

}  // namespace memdecay::client
