// Exact, then estimated (see distinct.h). 64-bit hashes need no correction at the upper end, and
// the estimate starts far above the lower one.
#include "client/ctl/replay/distinct.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace memdecay::ctl {
namespace {

constexpr int kRegisterBits = 16;
constexpr size_t kRegisters = size_t{1} << kRegisterBits;

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t spread(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Distinct::Distinct(size_t exact_up_to) : exact_up_to_(exact_up_to), registers_(kRegisters) {}

void Distinct::add(uint64_t id) {
  if (!estimated_ && !ids_.insert(id).second) return;
  const uint64_t hash = spread(id);
  const int rank = std::countl_zero(hash << kRegisterBits | (kRegisters - 1)) + 1;
  uint8_t& seen = registers_[hash >> (64 - kRegisterBits)];
  seen = std::max(seen, static_cast<uint8_t>(rank));
  if (!estimated_ && ids_.size() > exact_up_to_) {
    estimated_ = true;
    absl::flat_hash_set<uint64_t>().swap(ids_);
  }
}

uint64_t Distinct::count() const {
  if (!estimated_) return ids_.size();
  double sum = 0;
  for (const uint8_t rank : registers_) sum += std::ldexp(1.0, -int{rank});
  const auto m = static_cast<double>(kRegisters);
  const double raw = 0.7213 / (1 + 1.079 / m) * m * m / sum;
  const auto empty = static_cast<double>(std::count(registers_.begin(), registers_.end(), 0));
  // Few ids for so many registers: the empty ones say more (the paper's linear counting).
  const bool few = raw <= 2.5 * m && empty > 0;
  return static_cast<uint64_t>(std::llround(few ? m * std::log(m / empty) : raw));
}

}  // namespace memdecay::ctl
