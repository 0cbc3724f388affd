// See completions.h.
#include "tests/contract/completions.h"

namespace memdecay::cuda {

MoverCallback Completions::callback() {
  return [this](const MoveCompletion& completion) {
    std::unique_lock lock(mutex_);
    done_.push_back(completion);
    ++held_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !holding_; });
    --held_;
  };
}

void Completions::hold() {
  const std::lock_guard lock(mutex_);
  holding_ = true;
}

void Completions::release() {
  const std::lock_guard lock(mutex_);
  holding_ = false;
  changed_.notify_all();
}

void Completions::await_held() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return held_ > 0; });
}

std::vector<MoveCompletion> Completions::await(size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, count] { return done_.size() >= count; });
  return done_;
}

size_t Completions::count() {
  const std::lock_guard lock(mutex_);
  return done_.size();
}

Bytes pattern(uint64_t key, uint64_t bytes) {
  Bytes out(bytes);
  uint64_t state = key * 0x9e3779b97f4a7c15ull + 1;
  for (std::byte& byte : out) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    byte = static_cast<std::byte>(state >> 56);
  }
  return out;
}

}  // namespace memdecay::cuda
