// Mailbox: a bounded queue from many threads to one, and Wake: what its owner sleeps on. The mutex
// is a private leaf: nothing is called while it is held.
// Full: put() answers kFull and keeps nothing; the sender decides. put_always() is for lanes that
// are bounded by something else (completions by what is in flight).
// Thread: put on any, take on one. Invariant: items come out in the order in which put() took them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/contract/clock.h"

namespace memdecay::base {

// A flag to sleep on. ring() before wait() is not lost.
class Wake {
 public:
  void ring() {
    const absl::MutexLock lock(&mutex_);
    rung_ = true;
  }
  // Returns at once if it was rung since the last return, else when it is rung or `longest` is
  // over.
  void wait(Duration longest) {
    const absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&rung_), absl::Nanoseconds(longest.nanoseconds));
    rung_ = false;
  }
  void wait() {
    const absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&rung_));
    rung_ = false;
  }

 private:
  absl::Mutex mutex_;
  bool rung_ ABSL_GUARDED_BY(mutex_) = false;
};

template <typename Item>
class Mailbox {
 public:
  enum class Put : uint8_t { kTaken, kFull };

  // `wake` outlives the mailbox and is rung by every item that is taken.
  Mailbox(size_t capacity, Wake& wake) : capacity_(capacity), wake_(wake) {}

  Put put(Item item) {
    {
      const absl::MutexLock lock(&mutex_);
      if (items_.size() >= capacity_) return Put::kFull;
      push(std::move(item));
    }
    wake_.ring();
    return Put::kTaken;
  }
  void put_always(Item item) {
    {
      const absl::MutexLock lock(&mutex_);
      push(std::move(item));
    }
    wake_.ring();
  }

  std::optional<Item> take() {
    if (size() == 0)
      return std::nullopt;  // the owner polls several boxes; an empty one costs a load
    const absl::MutexLock lock(&mutex_);
    if (items_.empty()) return std::nullopt;
    std::optional<Item> item(std::move(items_.front()));
    items_.pop_front();
    size_.store(items_.size(), std::memory_order_release);
    return item;
  }

  size_t size() const { return size_.load(std::memory_order_acquire); }
  size_t capacity() const { return capacity_; }

 private:
  void push(Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    items_.push_back(std::move(item));
    size_.store(items_.size(), std::memory_order_release);
  }

  const size_t capacity_;
  Wake& wake_;
  absl::Mutex mutex_;
  std::deque<Item> items_ ABSL_GUARDED_BY(mutex_);
  std::atomic<size_t> size_{0};
};

}  // namespace memdecay::base
