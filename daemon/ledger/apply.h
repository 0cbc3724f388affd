// One function an event: how it changes the tables. Grouped in files by who speaks: on_engine.cc,
// on_session.cc, on_resume.cc, on_pages.cc, on_tags.cc, on_step.cc, on_request.cc, on_lookup.cc,
// on_done.cc, on_tick.cc. ledger.cc calls the one that fits, then the pump.
// Thread: the ledger's.
#pragma once

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

void apply(Context& context, const Attach& event);
void apply(Context& context, const Reattach& event);
void apply(Context& context, const Disconnected& event);
void apply(Context& context, const Silence& event);
void apply(Context& context, const EngineGone& event);
void apply(Context& context, const Leave& event);
void apply(Context& context, const SlabUnmapped& event);
void apply(Context& context, const OpenSession& event);
void apply(Context& context, const ResumeSession& event);
void apply(Context& context, const ForkSession& event);
void apply(Context& context, const CloseSession& event);
void apply(Context& context, const Extend& event);
void apply(Context& context, const Written& event);
void apply(Context& context, const Seal& event);
void apply(Context& context, const Tag& event);
void apply(Context& context, const Untag& event);
void apply(Context& context, const EndGroup& event);
void apply(Context& context, const Hint& event);
void apply(Context& context, const Supersede& event);
void apply(Context& context, const Pin& event);
void apply(Context& context, const Unpin& event);
void apply(Context& context, const SetBudget& event);
void apply(Context& context, const SetMode& event);
void apply(Context& context, const Truncate& event);
void apply(Context& context, const Park& event);
void apply(Context& context, const Unpark& event);
void apply(Context& context, const Repair& event);
void apply(Context& context, const Observe& event);
void apply(Context& context, const GaveUp& event);
void apply(Context& context, const Kept& event);
void apply(Context& context, const Resident& event);
void apply(Context& context, const ReadFence& event);
void apply(Context& context, const EvictPages& event);
void apply(Context& context, const RestorePages& event);
void apply(Context& context, const CancelRestore& event);
void apply(Context& context, const Lookup& event);
void apply(Context& context, const Acquire& event);
void apply(Context& context, const Release& event);
void apply(Context& context, const Pressure& event);
void apply(Context& context, const Drop& event);
void apply(Context& context, const Drain& event);
void apply(Context& context, const CopyDone& event);
void apply(Context& context, const FencePassed& event);
void apply(Context& context, const SlabFailed& event);
void apply(Context& context, const Tick& event);

}  // namespace memdecay::ledger
