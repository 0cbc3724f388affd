// See real_clock.h. clock_gettime cannot fail for CLOCK_MONOTONIC.
#include "daemon/base/real_clock.h"

#include <time.h>

namespace memdecay::base {

Instant RealClock::now() const {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return {int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec};
}

uint64_t unix_seconds() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec);
}

Instant ShiftedClock::now() const {
  const int64_t stands_at = stands_at_.load();
  if (stands_at != kRuns) return {stands_at};
  return RealClock().now() + Duration{offset_.load()};
}

void ShiftedClock::advance(Duration by) {
  (stands_at_.load() == kRuns ? offset_ : stands_at_).fetch_add(by.nanoseconds);
}

void ShiftedClock::stand() { stands_at_.store(now().nanoseconds); }

}  // namespace memdecay::base
