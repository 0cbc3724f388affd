// Finding contents by key, and acquires that wait for a comparison first.
// Thread: the ledger's.
#pragma once

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

// The comparison that acquires wait for has ended: they are looked at again.
void verified(Context& context, CopyId copy, const absl::Status& status);

// Comparisons that were abandoned (the page is gone) are no longer waited for.
void recheck_acquires(Context& context);

}  // namespace memdecay::ledger
