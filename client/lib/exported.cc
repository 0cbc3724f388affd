// The shared object's own source: all it holds is memdecay_client whole; memdecay.map says which
// names leave it.
// Thread: none.
#include "client/memdecay.h"

static_assert(MEMDECAY_API_VERSION == 1);
