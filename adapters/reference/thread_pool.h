// A small fixed team of threads for loops whose items do not depend on each other.
//
// Why: two cores halve a forward pass. Items are claimed one by one, so a busy core slows only
// itself; which thread takes an item never changes a result.
// Thread: run() is called by one thread at a time, which works as well; idle members block in the
// kernel (they share their cores with the daemon).
// Invariants: run() returns after the last item; a member touches a job only between claiming one
// of its items and finishing that item.
// Not here: scheduling, priorities, nested loops.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace memdecay::reference {

class ThreadPool {
 public:
  static constexpr int kMaxThreads = 64;
  static constexpr uint32_t kMaxItems = (1u << 20) - 1;

  // `threads` counts the caller: 1 starts none. Values are clamped to 1..kMaxThreads.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(members_.size()) + 1; }

  // Calls work(item, member) for every item in [0, items); member is in [0, threads()).
  // items <= kMaxItems.
  using Work = absl::FunctionRef<void(uint32_t item, int member)>;
  void run(uint32_t items, Work work);

 private:
  void serve(int member);
  void work_on_items(int member);

  // state_ packs generation (24 bits), item count (20) and next item (20): one compare-and-swap
  // claims an item of exactly the job it was read from.
  std::atomic<uint64_t> state_{0};
  std::atomic<const Work*> work_{nullptr};
  std::atomic<uint32_t> finished_{0};
  std::atomic<uint32_t> published_{0};  // changes with every job; what idle members wait for
  std::atomic<bool> stopping_{false};
  uint64_t generation_ = 0;
  std::vector<std::thread> members_;
};

}  // namespace memdecay::reference
