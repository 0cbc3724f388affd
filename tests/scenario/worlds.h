// The worlds that a script can run in.
// Thread: any. A world's statements are made on one thread.
#pragma once

#include <memory>

#include "tests/scenario/statements.h"
#include "tests/scenario/world.h"

namespace memdecay::scenario {

std::unique_ptr<World> make_world(WorldKind kind, World::Tracer tracer);

}  // namespace memdecay::scenario
