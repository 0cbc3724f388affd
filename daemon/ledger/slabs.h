// Slabs inside the ledger: making, retiring and destroying them. Used by slots.cc; rules outside
// speak of slots (slots.h).
// Thread: the ledger's. Invariant: a slab is destroyed only when every live mapper has let go.
#pragma once

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

// Makes a slab for the pool if there is room, retiring an unmapped empty one of another pool if
// that makes room. False: no room.
bool make_slab(Context& context, const PoolKey& pool, uint64_t page_bytes);
// A retiring slab lost a slot or a mapper: asks mappers, destroys it once nobody is left.
void settle_retired(Context& context, Slab& slab);

}  // namespace memdecay::ledger
