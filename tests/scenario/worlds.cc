// See worlds.h.
#include "tests/scenario/worlds.h"

#include "tests/scenario/real_world.h"
#include "tests/scenario/sim_world.h"

namespace memdecay::scenario {

std::unique_ptr<World> make_world(WorldKind kind, World::Tracer tracer) {
  if (kind == WorldKind::kReal) return std::make_unique<RealWorld>(std::move(tracer));
  return std::make_unique<SimScenarioWorld>(std::move(tracer));
}

}  // namespace memdecay::scenario
