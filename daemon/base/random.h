// A small seeded generator (SplitMix64, Steele et al. 2014): the same seed gives the same numbers
// on every machine, which the standard distributions do not promise. For scheduling in simulation,
// jitter and faults; never for secrets.
// Thread: a value with one owner. Not here: seeds from the machine (the composition root's).
#pragma once

#include <cstdint>

namespace memdecay::base {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [0, bound); 0 for bound 0. The bias of at most bound / 2^64 does not matter here.
  uint64_t below(uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
  // In [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // True with this probability.
  bool chance(double probability) { return unit() < probability; }

 private:
  uint64_t state_;
};

}  // namespace memdecay::base
