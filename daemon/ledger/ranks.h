// Classes of the orders in which contents leave a tier, the first to go first. Priority and then
// use decide inside one (ranks.cc).
// Thread: constants.
#pragma once

#include <cstdint>

namespace memdecay::ledger {

enum RankClass : uint8_t {
  kWorthless,  // no living session refers to it, and the page before it is gone, or it would take
               // longer to restore than to compute (host)
  kRedundant,  // the device has the bytes too (host), or an entry has a twin
  kUnreferenced,  // by no session: an entry
  kOfEnded,       // by closed or orphaned sessions only
  kOfWaiting,
  kOfRunning,
  kLeased,  // host; never by room making
};

}  // namespace memdecay::ledger
