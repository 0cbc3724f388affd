// The release daemon's half of the seam in extension.h: nothing stands between it and the world.
// Thread: main, once. Linked into memdecayd only; the lab has its own.
#include "daemon/server/extension.h"

namespace memdecay::server {

std::unique_ptr<Extension> make_extension() { return nullptr; }

}  // namespace memdecay::server
