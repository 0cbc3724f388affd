// From observations to half-lives with intervals and to tables of expected lift: what
// `memdecayctl calibrate` prints and writes (README.md has the method).
//
// Interval: cluster bootstrap. Groups of sessions are drawn with repetition, and each draw moves
// the fit by one Newton step from its end (slopes and curvatures add up over groups, so a draw
// costs microseconds); the middle 95 % of the rates, widened for the groups' number as Student's t
// is. Shrinking: the rate leans towards the default's with the precision that the bootstrap tells,
// against a prior as wide as the larger of the two rates.
//
// Thread: the owner's. Pure; the seed is the caller's, equal input gives equal output.
// Not here: files (client/ctl/calibrate).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/policy/calibration/expected.h"
#include "daemon/policy/calibration/tally.h"
#include "daemon/policy/calibration/watch.h"

namespace memdecay::calibration {

// Fewer sessions that have a region say nothing of its half-life.
inline constexpr uint64_t kLeastSessions = 20;

struct Interval {
  double low = 0;
  double high = 0;
};

struct AgePoint {  // lift against age, distance and the session's level taken out
  double age = 0;
  double lift = 0;    // in multiples of the session's middle page
  double weight = 0;  // tokens
};

struct RegionResult {
  enum class Verdict : uint8_t {
    kFitted,
    kNothingSeen,
    kTooFewSessions,
    kNoShape,  // its lift does not depend on age in the form of a decay to a floor
  };
  Verdict verdict = Verdict::kNothingSeen;
  uint64_t sessions = 0;
  uint64_t observations = 0;  // pages times observations of generated tokens
  double default_half_life = 0;
  // kFitted only. A half-life of infinity: no decay could be seen.
  double fresh = 0;      // c: what a fresh page gets above the floor
  double measured = 0;   // half-life as fitted
  Interval interval;     // of it
  double half_life = 0;  // shrunk; otherwise the default
  std::vector<AgePoint> by_age;
};

struct Result {
  std::vector<RegionResult> regions;  // by RegionId
  double floor = 0;                   // f
  uint64_t sessions = 0;
  size_t groups = 0;
  enum class Fit : uint8_t { kConverged, kNotConverged, kNothing } fit = Fit::kNothing;
};

struct Settings {
  uint32_t draws = 1000;  // of the bootstrap; at least kLeastDraws
  uint64_t seed = 1;
  // By RegionId; regions beyond it are compared with defaults of custom regions.
  std::vector<policy::RegionParameters> defaults = policy::default_regions();
};
inline constexpr uint32_t kLeastDraws = 100;

Result calibrate(const Tally& tally, size_t regions, const Settings& settings);

}  // namespace memdecay::calibration
