// See random_options.h.
#include "tests/unit/daemon/policy/random_options.h"

#include <algorithm>
#include <cmath>

namespace memdecay::policy {

using test::SlowConfig;

namespace {

DistanceTable random_table(Chance& chance, std::vector<double>& slow) {
  for (int bins = 1 + chance.pick(kDistanceBins); bins > 0; --bins)
    slow.push_back(0.01 + 9 * chance.unit());
  DistanceTable fast;
  fast.fill(slow.back());
  std::copy(slow.begin(), slow.end(), fast.begin());
  return fast;
}

}  // namespace

// Other clocks, growth, groups, boost, valve: each for some.
void choose_practice(Chance& chance, PolicyOptions& options, SlowConfig& config) {
  for (RegionParameters& region : options.regions) {
    if (chance.pick(2) == 0) continue;
    region.clock = static_cast<Clock>(chance.pick(3));
    if (region.clock == Clock::kTurns) region.half_life = 0.5 + 4 * chance.unit();
    if (chance.pick(4) == 0) {
      region.doubling = region.half_life;
      region.half_life = INFINITY;
    }
    if (chance.pick(5) == 0) region.half_life = INFINITY;
    if (chance.pick(3) == 0) region.turn_decay = chance.unit();
    if (chance.pick(3) == 0) region.held = Held::kUntilEnded;
  }
  if (chance.pick(2) == 0) {
    options.boost = config.boost = 3 * chance.unit();
    options.boost_neighbours = config.neighbours = chance.pick(4);
  }
  if (chance.pick(2) == 0) {
    const bool linear = options.name == "memdecay";
    options.valve_score = config.valve_score = linear ? 0.5 * chance.unit() : -6 * chance.unit();
    options.valve_regions.emplace();
    for (int region = 1; region < 7; region += 1 + chance.pick(3)) {
      options.valve_regions->push_back(static_cast<RegionId>(region));
      config.valve_regions.insert(region);
    }
  }
}

// Half the histories have the defaults.
void choose_constants(Chance& chance, PolicyOptions& options, SlowConfig& config) {
  using Table = ExpectedLift::Table;
  const auto no_boost = [&] {
    options.boost.reset();
    options.boost_neighbours.reset();
    config.boost = 0;
  };
  if (chance.pick(2) == 0) return no_boost();
  ExpectedLift lift;
  switch (chance.pick(4)) {
    case 0:
      break;
    case 1:
      lift.table = Table::kOne;
      config.expected = "one";
      break;
    case 2:
      lift.table = Table::kShippedHeads;
      config.expected = "shipped_heads";
      break;
    default:
      lift.table = Table::kGiven;
      config.expected = "given";
      lift.given = random_table(chance, config.given);
  }
  if (chance.pick(2) == 0) {
    const int region = chance.pick(static_cast<int>(options.regions.size()));
    lift.regions[static_cast<RegionId>(region)] = random_table(chance, config.given_to[region]);
  }
  options.expected_lift = lift;
  options.beta = config.beta = chance.pick(3) == 0 ? 0.0 : 3 * chance.unit();
  options.gamma = config.gamma = chance.pick(3) == 0 ? 0.0 : 3 * chance.unit();
  options.decay_cap = config.D = chance.pick(3) == 0 ? INFINITY : 8 * chance.unit();
  options.memory_tokens = config.G = 1 + 5000 * chance.unit();
  options.prior_evidence = config.k0 = 0.1 + 4 * chance.unit();
  switch (chance.pick(4)) {
    case 0:
      options.refresh_rule = RefreshRule::kNone;
      config.refresh = "none";
      return no_boost();
    case 1:
      options.refresh_rule = RefreshRule::kUniform;
      config.refresh = "uniform";
      options.tau_uniform = config.tau = 4 * chance.unit();
      return;
    case 2:
      options.refresh_rule = RefreshRule::kExpected;
      config.refresh = "expected";
      break;
    default:
      options.refresh_rule = RefreshRule::kLift;
      config.refresh = "lift";
  }
  options.refresh_lift = config.refresh_lift = 4 * chance.unit();
  options.refresh_fraction = config.refresh_fraction = chance.unit();
}

}  // namespace memdecay::policy
