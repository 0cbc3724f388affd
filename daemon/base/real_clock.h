// The machine's monotonic clock (CLOCK_MONOTONIC): the one place of the daemon that reads it.
// Instants of one boot are comparable between processes. The time of day is for headers of files:
// nothing decides by it. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "daemon/base/clock.h"

namespace memdecay::base {

class RealClock final : public Clock {
 public:
  Instant now() const override;
};

// The time of day, in seconds since 1970.
uint64_t unix_seconds();

// The lab's clock: real time plus what tests have added. After advance() wake whoever waits for a
// deadline (Reactor::inspect does). Waits on files and futexes still go by RealClock.
class ShiftedClock final : public Clock {
 public:
  Instant now() const override;
  void advance(Duration by);  // not negative
  // From now on it moves by advance() alone, so that a slow machine changes no deadline.
  void stand();

 private:
  static constexpr int64_t kRuns = -1;
  std::atomic<int64_t> offset_{0};
  std::atomic<int64_t> stands_at_{kRuns};
};

}  // namespace memdecay::base
