// Random options for the product and, the same, for the slow reference.
// Thread: values. Not here: the histories (test_random_histories.cc).
#pragma once

#include <cstdint>
#include <random>

#include "daemon/policy/options.h"
#include "tests/support/slow_policy.h"

namespace memdecay::policy {

class Chance {
 public:
  explicit Chance(uint64_t seed) : engine_(seed) {}
  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(engine_); }
  double unit() { return std::uniform_real_distribution<double>(0.0, 1.0)(engine_); }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

// Other clocks, growth, groups, boost, valve: for memdecay and memdecay_n.
void choose_practice(Chance& chance, PolicyOptions& options, test::SlowConfig& config);
// memdecay_n's own.
void choose_constants(Chance& chance, PolicyOptions& options, test::SlowConfig& config);

}  // namespace memdecay::policy
