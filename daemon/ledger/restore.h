// How pages come back: an op holds the pages that belong together (an explicit restore, an acquire,
// a session's wake-up), gets all its slots at once or waits, and ends when every page is mapped by
// its engine or has failed. A page counts as resident from the engine's acknowledgement.
// Thread: the ledger's. Not here: who waits for slots first (pump.h).
#pragma once

#include <vector>

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

// Begins an op for these pages of the session; pages that are there already count at once.
OpId begin_op(Context& context, Session& session, RestoreOp::Purpose purpose, RequestId request,
              const std::vector<PageIndex>& pages, const std::vector<uint32_t>& blocks);
// Wakes a session: all that left while it was idle (exact: everything missing) comes back, then
// ReadyNotice. Nothing missing: ready at once.
void wake(Context& context, Session& session);
// Takes back the question about an asked page.
void withdraw(Context& context, const Session& session, PageIndex page);
// A lossy session wakes with the pages that its budget has room for, the best ones.
void give_way(Context& context, OpId op);
// A wake-up that waits: what its session has lost meanwhile comes back with the rest.
void widen_wake(Context& context, RestoreOp& op);
// Slots the op needs now; nullopt: some page is still on its way out, ask again.
std::optional<uint32_t> op_need(const State& state, const RestoreOp& op);
// Gives the op its slots and starts its copies. Slots must be takeable.
void admit_op(Context& context, RestoreOp& op);
// The engine mapped the page, or nobody has to.
void page_resident(Context& context, ViewRef ref);
// Ops of the session that still wait for the page.
std::vector<OpId> ops_with(const State& state, ViewRef ref);
// The engine has kept a page that the op waits for.
void op_page_there(Context& context, OpId op, PageIndex page);
void op_page_failed(Context& context, OpId op, PageIndex page, ErrorCode code);
// A restore's copy has ended.
void restore_copied(Context& context, Content& content, const absl::Status& status);
// Takes the op back: `code` kOk for a cancellation, else each page that is still to come has
// failed.
void abandon_op(Context& context, OpId op, ErrorCode code);
// The last view that waited for the content went: its copy ends unheard.
void unwanted(Context& context, Content& content);
// Ready if it wants to compute, nothing is missing and nothing is on its way.
void settle_ready(Context& context, Session& session);

}  // namespace memdecay::ledger
