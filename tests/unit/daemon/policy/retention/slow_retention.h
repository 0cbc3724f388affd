// The retention policies once more, as obvious and slow as they can be: vectors that are searched
// from one end to the other, libm, the steps in the order of their papers. It shares no header with
// the product, so that an error would have to be made twice.
// Thread: values.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

namespace memdecay::test {

struct SlowUse {
  uint64_t key = 0;
  int64_t at_ms = 0;
  uint64_t chain = 0;
  uint32_t depth = 0;
  bool partial = false;
  bool cannot_pay = false;
  double log2_b = 0;
  uint64_t next = 0;  // number of the next use of the key
};

struct SlowTierConfig {
  std::string name;
  size_t capacity = 1;
  uint64_t salt = 0;
  size_t history = 0;  // decay; > 0
};

class SlowTier {
 public:
  virtual ~SlowTier() = default;
  // True: it was held.
  virtual bool use(const SlowUse& use) = 0;
  virtual void remove(uint64_t key) = 0;
  virtual std::set<uint64_t> held() const = 0;
};

std::unique_ptr<SlowTier> make_slow_tier(const SlowTierConfig& config);

}  // namespace memdecay::test
