// Turns: the branches of a `parallel` block. Each has a thread, exactly one runs at a time, and it
// hands over only at a statement's end or where it would wait; who is next is drawn by the seed. So
// branches interleave, the interpreter stays straight-line code, and a seed replays exactly.
// Thread: run() from the runner's; the others from branches. Invariant: one branch runs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "daemon/base/random.h"

namespace memdecay::scenario {

class Turns {
 public:
  explicit Turns(uint64_t seed) : random_(seed) {}

  // Returns when every branch has returned.
  void run(const std::vector<std::function<void()>>& branches);
  // By the running branch: somebody else goes on (or the same one).
  void yield();
  // By the running branch, which waits for something: true once another branch has had its turn;
  // false when all others wait as well or have ended, so that only time can help.
  bool yield_waiting();

 private:
  enum class State : uint8_t { kReady, kWaiting, kEnded };
  enum class After : uint8_t { kComesBack, kHasEnded };

  void begin(size_t branch);
  void end();
  void hand_over(std::unique_lock<std::mutex>& lock, After after);

  std::mutex mutex_;
  std::condition_variable changed_;
  base::Random random_;
  std::vector<State> states_;
  size_t running_ = SIZE_MAX;
};

}  // namespace memdecay::scenario
