// The client's clock: CLOCK_MONOTONIC, so that deadlines survive a changed wall clock.
// Thread: any.
#include "client/lib/steady_clock.h"

#include <time.h>

#include <algorithm>

namespace memdecay::client {

Instant now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return {static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec};
}

absl::Duration left_until(Instant deadline) {
  return absl::Nanoseconds(std::max<int64_t>(0, (deadline - now()).nanoseconds));
}

int left_milliseconds(Instant deadline) {
  const int64_t left = (deadline - now()).nanoseconds;
  if (left <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((left + 999'999) / 1'000'000, 3'600'000));
}

}  // namespace memdecay::client
