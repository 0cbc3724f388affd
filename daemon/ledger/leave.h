// How a page leaves the device: asked of its engine, given up at a step boundary, copied down
// unless a lower tier has it already, its slot freed, Released. A slot is freed when the last
// session that maps it has given it up and every fence and copy on it is over. Thread: the
// ledger's. Not here: which page (choose.h).
#pragma once

#include <string>
#include <vector>

#include "daemon/ledger/choose.h"
#include "daemon/ledger/context.h"

namespace memdecay::ledger {

// Lets the chosen pages leave: one notice a session, one decision a page.
void begin_leaving(Context& context, std::vector<Victim> victims, const std::string& pressure,
                   const Spared& spared);
// The engine (or nobody, for a session without one) gave up the page.
void give_up(Context& context, ViewRef ref, EngineId engine, const Fence& fence);
// A fence or copy on the content is over, or its last view went: moves on if it is leaving.
void progress_leaving(Context& context, Content& content);
// An eviction's copy has ended.
void evict_copied(Context& context, Content& content, const absl::Status& status);
// A copy ahead of need, and its end.
void store_ahead(Context& context, Content& content);
void store_copied(Context& context, Content& content, const absl::Status& status);
// A replica on the device whose bytes are not what was sealed: nobody gets it.
void condemn_device_replica(Context& context, Content& content);
// Somebody wants it after all: it stays where it is.
void stay(Context& context, Content& content);
// Opens a fence watch; does nothing for a fence without a value.
bool watch(Context& context, EngineId engine, const Fence& fence, FenceWatch what);

}  // namespace memdecay::ledger
