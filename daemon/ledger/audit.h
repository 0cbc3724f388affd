// The invariants of the ledger, each checked against the page states.
// Thread: the ledger's.
#pragma once

#include <string>
#include <vector>

#include "daemon/ledger/state.h"

namespace memdecay::ledger {

// Empty: every counter agrees and every invariant holds.
std::vector<std::string> audit(const State& state);

}  // namespace memdecay::ledger
