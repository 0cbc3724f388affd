// See real_clock.h. clock_gettime cannot fail for CLOCK_MONOTONIC.
#include "daemon/base/real_clock.h"

#include <time.h>

namespace memdecay::base {

Instant RealClock::now() const {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return {int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec};
}

Instant ShiftedClock::now() const { return RealClock().now() + Duration{offset_.load()}; }

}  // namespace memdecay::base
