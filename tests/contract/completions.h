// What tests of movers share: completions collected and awaited, bytes to recognise.
// Thread: the callback is the mover's; everything else is the test's.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "cuda/mover.h"

namespace memdecay::cuda {

using Bytes = std::vector<std::byte>;

// `bytes` numbers that depend on `key` and their place.
Bytes pattern(uint64_t key, uint64_t bytes);

// Collects completions; can hold the mover's thread inside a callback.
class Completions {
 public:
  MoverCallback callback();
  void hold();     // the next callback waits …
  void release();  // … until here
  void await_held();
  std::vector<MoveCompletion> await(size_t count);
  size_t count();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<MoveCompletion> done_;
  bool holding_ = false;
  int held_ = 0;
};

}  // namespace memdecay::cuda
