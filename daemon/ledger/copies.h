// Copies in flight: started one at a time a content, watched by a deadline, and abandoned when
// nobody wants their outcome. An abandoned copy may still end: its completion is counted and
// ignored, and the slot that it writes belongs to nobody until then (or until it counts as lost).
// Thread: the ledger's.
#pragma once

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

CopyId start_copy(Context& context, Content& content, CopyKind kind, OpId op);
// Does nothing if the content has no copy in flight.
void abandon_copy(Context& context, Content& content);
// Whether a copy of that kind is in flight on the content.
bool has_copy(const State& state, const Content& content, CopyKind kind);

}  // namespace memdecay::ledger
