// The team of thread_pool.h on C++20 atomic waits (futexes).
#include "adapters/reference/thread_pool.h"

#include <algorithm>

namespace memdecay::reference {
namespace {

constexpr uint64_t kFieldBits = 20;
constexpr uint64_t kFieldMask = (uint64_t{1} << kFieldBits) - 1;

uint64_t next_item(uint64_t state) { return state & kFieldMask; }
uint64_t item_count(uint64_t state) { return (state >> kFieldBits) & kFieldMask; }

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const int extra = std::clamp(threads, 1, kMaxThreads) - 1;
  for (int member = 1; member <= extra; ++member) {
    members_.emplace_back([this, member] { serve(member); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  published_.fetch_add(1);
  published_.notify_all();
  for (std::thread& member : members_) member.join();
}

void ThreadPool::run(uint32_t items, Work work) {
  if (members_.empty() || items <= 1) {
    for (uint32_t item = 0; item < items; ++item) work(item, 0);
    return;
  }
  ++generation_;
  work_.store(&work, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  state_.store((generation_ << (2 * kFieldBits)) | (uint64_t{items} << kFieldBits),
               std::memory_order_release);
  published_.fetch_add(1, std::memory_order_release);
  published_.notify_all();
  work_on_items(0);
  for (uint32_t done = finished_.load(std::memory_order_acquire); done != items;
       done = finished_.load(std::memory_order_acquire)) {
    finished_.wait(done, std::memory_order_acquire);
  }
}

void ThreadPool::serve(int member) {
  uint32_t seen = 0;
  for (;;) {
    published_.wait(seen, std::memory_order_acquire);
    seen = published_.load(std::memory_order_acquire);
    if (stopping_.load()) return;
    work_on_items(member);
  }
}

void ThreadPool::work_on_items(int member) {
  uint64_t state = state_.load(std::memory_order_acquire);
  while (next_item(state) < item_count(state)) {
    // If the job was replaced after this load, the exchange fails and the pointer is not used.
    const Work* work = work_.load(std::memory_order_relaxed);
    if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
      continue;
    }
    (*work)(static_cast<uint32_t>(next_item(state)), member);
    const uint32_t done = finished_.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (done == item_count(state)) finished_.notify_one();
    state = state_.load(std::memory_order_acquire);
  }
}

}  // namespace memdecay::reference
