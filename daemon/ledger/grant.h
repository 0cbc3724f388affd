// Handing out slots for pages that will be written.
// Thread: the ledger's.
#pragma once

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

// Engine placement: the blocks that were named are still free. Always true for daemon placement.
bool blocks_free(const State& state, const Session& session, const Waiter& waiter);
// Grants waiter.need pages at the session's end and replies. The slots must be takeable.
void grant(Context& context, Session& session, const Waiter& waiter);
// Whether pages that the session itself sealed stay findable once nobody else refers to them.
enum class Entries : uint8_t { kKeep, kDropOwn };
// Takes back pages [first, end) of the session: grants are freed, contents unreferenced.
void remove_pages(Context& context, Session& session, PageIndex first, EngineId reader,
                  const Fence& fence, Entries entries = Entries::kKeep);

// The session is taken from a living engine: its unsealed slots are quarantined until that engine
// is gone.
void steal_unsealed(Context& context, Session& session, EngineId writer);

}  // namespace memdecay::ledger
