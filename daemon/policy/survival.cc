// Piecewise constant rates (survival.h). Only fixed_exp2 and fixed_log2, so that every machine
// orders sessions alike.
#include "daemon/policy/survival.h"

#include <algorithm>
#include <limits>

#include "daemon/policy/math.h"

namespace memdecay::policy {
namespace {

constexpr double kPriorWeight = 0.25;  // resumptions that a bucket's prior is worth
constexpr double kFade = 255.0 / 256.0;
constexpr double kLog2E = 1.0 / kLn2;

// Seconds after which a session is expected back, before any was seen. Their order is that of the
// states: what waits for a copy is back at once, what has ended hardly ever.
double prior_seconds(SessionState state) {
  switch (state) {
    case SessionState::kDecoding:
      return 1.0;
    case SessionState::kPreempted:
      return 5.0;
    case SessionState::kWaitingTool:
      return 60.0;
    case SessionState::kWaitingUser:
      return 600.0;
    case SessionState::kOrphaned:
      return 6000.0;
    case SessionState::kEnded:
      return 60000.0;
  }
  return 60000.0;
}

double begin_of(size_t bucket) {
  return bucket == 0 ? 0.0 : fixed_exp2(static_cast<double>(bucket) - 1.0);
}

// Calls use(bucket, seconds in it) for every bucket that [from, to) touches.
template <typename Use>
void for_buckets(size_t buckets, double from, double to, Use use) {
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    const double begin = std::max(from, begin_of(bucket));
    const double end = bucket + 1 == buckets ? to : std::min(to, begin_of(bucket + 1));
    if (begin < end) use(bucket, end - begin);
  }
}

}  // namespace

void Survival::waited(SessionState state, double from, double to) {
  for_buckets(kBuckets, from, to, [&](size_t bucket, double seconds) {
    states_[static_cast<size_t>(state)][bucket].seconds += seconds;
  });
}

void Survival::resumed(SessionState state, double after) {
  std::array<Bucket, kBuckets>& buckets = states_[static_cast<size_t>(state)];
  for (Bucket& bucket : buckets) {
    bucket.seconds *= kFade;
    bucket.resumptions *= kFade;
  }
  size_t bucket = 0;
  while (bucket + 1 < kBuckets && after >= begin_of(bucket + 1)) ++bucket;
  buckets[bucket].resumptions += 1.0;
}

double Survival::log2_resume(SessionState state, double idle, double horizon) const {
  const double prior = prior_seconds(state);
  double hazard = 0.0;
  for_buckets(kBuckets, idle, idle + horizon, [&](size_t bucket, double seconds) {
    const Bucket& known = states_[static_cast<size_t>(state)][bucket];
    hazard += seconds * (known.resumptions + kPriorWeight) / (known.seconds + kPriorWeight * prior);
  });
  // 1 - e^-x, and x where that would cancel.
  const double probability = hazard < 1e-6 ? hazard : 1.0 - fixed_exp2(-hazard * kLog2E);
  return fixed_log2(std::max(probability, 0x1p-100));
}

}  // namespace memdecay::policy
