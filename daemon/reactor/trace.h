// One line of text for every event and effect: for --trace, for failures of tests and for the trace
// hash of simulation. Complete in what decides (ids, pages, fences, codes), short where it is bulk
// (token ids and checksums are folded into a number).
// Thread: pure functions, any. Invariant: equal values give equal text on every machine.
#pragma once

#include <string>

#include "daemon/ledger/effects.h"
#include "daemon/ledger/events.h"

namespace memdecay::reactor {

std::string to_text(const ledger::Event& event);
std::string to_text(const ledger::Effect& effect);

}  // namespace memdecay::reactor
