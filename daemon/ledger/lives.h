// How sessions and leases end: orphaned, expired, forgotten. Used by engines' events, closing and
// the passing of time.
// Thread: the ledger's.
#pragma once

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

// Its engine is certainly gone: what is sealed stays, resumable until orphan_ttl.
void orphan(Context& context, Session& session);
// Ops, waiting requests, unsealed pages and pins without ttl end; `fence` is its last step.
void let_go(Context& context, Session& session, const Fence& fence);
// Removes the session; exact contents stay as entries unless kForget and nobody else refers to
// them.
void erase_session(Context& context, Session& session, CloseSession::What what);
// Starts the time after which a session without engine is forgotten, within orphan_limit.
void start_ttl(Context& context, Session& session);
void end_lease(Context& context, LeaseId lease);
void unpin_page(State& state, Session& session, PageIndex page);

// Points watches elsewhere when what they watched for is gone.
void watches_to_slot(State& state, ViewRef view, const SlotRef& slot);
void watches_to_slot(State& state, ContentId content, const SlotRef& slot);
void watches_to_content(State& state, ViewRef view);

}  // namespace memdecay::ledger
