// How many different ids there were: exactly up to a bound, beyond it by HyperLogLog (Flajolet,
// Fusy, Gandouet, Meunier, AofA 2007) with 2^16 registers, standard error 0.4 %. So that a count
// over a trace of any length needs bounded memory: about 75 MiB, and 64 KiB once it estimates.
// Thread: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace memdecay::ctl {

class Distinct {
 public:
  explicit Distinct(size_t exact_up_to = size_t{1} << 22);
  void add(uint64_t id);
  uint64_t count() const;
  bool estimated() const { return estimated_; }

 private:
  const size_t exact_up_to_;
  absl::flat_hash_set<uint64_t> ids_;
  std::vector<uint8_t> registers_;
  bool estimated_ = false;
};

}  // namespace memdecay::ctl
