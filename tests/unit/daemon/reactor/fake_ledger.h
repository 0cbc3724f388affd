// A stand-in for the ledger, put in its place by the linker, so that the reactor's own rules are
// tested without the ledger's. It writes down what it is stepped with and answers a few events:
//   Attach     → CreateSlab 1, ShareSlab 1, Reply
//   EvictPages → StartCopy 1, CancelCopy 1, DropHost 1, WatchFence, ShadowRow, DestroySlab 1,
//   Notice Written    → a deadline `position` milliseconds from now; 999: one that no Tick clears
// Thread: the reactor's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/ledger/ledger.h"

namespace memdecay::ledger {

struct State {
  std::vector<std::string> seen;  // text of every event
  std::vector<Instant> times;
  std::optional<Instant> deadline;
  bool stuck = false;
};

}  // namespace memdecay::ledger
