// Simulated agents whose pages are needed for a while and then never again, as the events of a
// trace: what a calibration should find out is known.
//
// A page lives from its seal on for a time drawn from an exponential distribution with its region's
// half-life, then it is dead. While it lives it is used in bursts: bouts of strong attention of a
// few steps that begin at random, stronger for some pages than for others. Alive or dead it also
// gets a floor of noise. All of it is multiplied by a profile that falls with token distance, and
// the sum is shared out as softmax does: what one page gets another one loses. Nothing here knows
// how the calibration works: no lift, no bucket, no least squares.
// Thread: one. Not here: evictions (the cache is whole).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/functional/function_ref.h"
#include "daemon/policy/trace/event.h"

namespace memdecay::testing {

struct LivesOptions {
  uint64_t seed = 1;
  uint32_t sessions = 64;
  uint32_t steps = 1000;  // tokens that each session generates
  uint32_t every = 1;     // one step in so many is observed
  // By region; a region that is not named has no pages. Infinity: never dies.
  std::map<RegionId, double> half_lives;
  double floor = 0.3;  // of attention, where a living page gets about 2.5 on average
  double near = 1.0;   // how much steeper than flat the distance profile is; 0: flat
};

// The half-lives that the calibration is judged by.
std::map<RegionId, double> true_half_lives();

trace::Header lives_header();
void simulate_lives(const LivesOptions& options, absl::FunctionRef<void(const trace::Event&)> emit);

}  // namespace memdecay::testing
