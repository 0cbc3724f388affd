// See worlds.h.
#include "tests/scenario/worlds.h"

#include "tests/scenario/sim_world.h"

namespace memdecay::scenario {

std::unique_ptr<World> make_world(WorldKind, World::Tracer tracer) {
  return std::make_unique<SimScenarioWorld>(std::move(tracer));
}

}  // namespace memdecay::scenario
