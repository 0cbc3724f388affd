// Regret: a page that left by the daemon's choice and was wanted again soon. Per region and policy
// it says whose half-life is too short; a page that is regretted again and again goes back and
// forth (thrash).
//
// Soon is counted in steps of the session (limits.regret_steps). A session that waits makes no
// steps, so for a page that left while it waited soon is a time (limits.regret_ms); those are
// counted apart, since no half-life mends them. Wanted: a restore asks for it, or it is back, the
// earlier of the two, once a departure. What was asked for by hand, and what leaves because its
// session ended, is nobody's regret.
// Not seen: pages that are computed again without being asked for.
// Thread: the ledger's.
#pragma once

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

// The page was chosen to leave the session's view.
void note_left(Context& context, ViewRef view, Reason why);
// Somebody wants it in view, or it is.
void note_wanted(Context& context, ViewRef view);
// It stays after all.
void note_kept(State& state, ViewRef view);

}  // namespace memdecay::ledger
