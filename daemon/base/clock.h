// The clock as everything but the composition root sees it: given, never asked of the machine.
// Thread: now() on any.
#pragma once

#include "proto/contract/clock.h"

namespace memdecay::base {

class Clock {
 public:
  virtual ~Clock() = default;
  // Never runs back.
  virtual Instant now() const = 0;
};

}  // namespace memdecay::base
