// See turns.h.
#include "tests/scenario/turns.h"

#include <algorithm>
#include <thread>

namespace memdecay::scenario {

void Turns::run(const std::vector<std::function<void()>>& branches) {
  states_.assign(branches.size(), State::kReady);
  if (branches.empty()) return;
  running_ = random_.below(branches.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < branches.size(); ++i) {
    threads.emplace_back([this, i, &branches] {
      begin(i);
      branches[i]();
      end();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void Turns::begin(size_t branch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ == branch; });
}

void Turns::end() {
  std::unique_lock lock(mutex_);
  states_[running_] = State::kEnded;
  hand_over(lock, After::kHasEnded);
}

void Turns::yield() {
  std::unique_lock lock(mutex_);
  states_[running_] = State::kReady;
  hand_over(lock, After::kComesBack);
}

bool Turns::yield_waiting() {
  std::unique_lock lock(mutex_);
  states_[running_] = State::kWaiting;
  if (std::find(states_.begin(), states_.end(), State::kReady) == states_.end()) {
    states_[running_] = State::kReady;  // time passes for it
    return false;
  }
  hand_over(lock, After::kComesBack);
  return true;
}

void Turns::hand_over(std::unique_lock<std::mutex>& lock, After after) {
  const size_t self = running_;
  std::vector<size_t> candidates;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] != State::kEnded && (i != self || states_[i] == State::kReady)) {
      candidates.push_back(i);
    }
  }
  if (candidates.empty()) return;  // the last one has ended
  running_ = candidates[random_.below(candidates.size())];
  changed_.notify_all();
  if (after == After::kComesBack) changed_.wait(lock, [&] { return running_ == self; });
}

}  // namespace memdecay::scenario
