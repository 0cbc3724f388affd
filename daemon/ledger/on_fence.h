// What follows when a fence is over: it passed, or its engine is certainly gone.
// Thread: the ledger's.
#pragma once

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

void fence_over(Context& context, const FenceWatch& watch);
// The sealed page's bytes are there.
void complete_seal(Context& context, ViewRef ref);

}  // namespace memdecay::ledger
