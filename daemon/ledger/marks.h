// What keeps tiers at their marks between requests: budgets that shrank, watermarks, slabs that are
// being retired, and copies ahead of need. Best effort: takes what can go, asks again next step.
// Thread: the ledger's.
#pragma once

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

void keep_marks(Context& context);

}  // namespace memdecay::ledger
