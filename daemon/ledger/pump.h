// Requests that wait for slots, first come first served, and what keeps the tiers at their marks.
// After every step the pump looks at who waits, lets pages leave for them, serves who can be served
// and refuses who never can; then marks.h trims, empties and cleans.
// Thread: the ledger's. Invariant: a request waits only while what it waits for can come; a session
// that wants to wake up may wait for others to park.
#pragma once

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

void pump(Context& context);
// The session's extends that still wait are answered with the error.
void refuse_extends(Context& context, const Session& session, const absl::Status& status);
// A waiter's deadline has passed.
void waiter_overdue(Context& context, RequestId request);

}  // namespace memdecay::ledger
