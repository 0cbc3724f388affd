// RealFences: the reactor's Fences port over the timeline pages of engines' members. A fence that
// has passed is reported at once; the others are looked at every millisecond by a watcher thread
// that sleeps while there is none. (Engines signal before they acknowledge, so nearly all pass at
// once; a GPU stream's store wakes nobody, so looking is the only way that works for all.) Thread:
// any. Invariants: a watch is reported once or ends with its engine; nothing of an engine is
// reported after engine_gone() has returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cuda/timeline.h"
#include "daemon/reactor/ports.h"

namespace memdecay::reactor {

class RealFences final : public Fences {
 public:
  // Reactor::complete. It is called with the lock held and must not call back.
  using Complete = std::function<void(ledger::Event)>;
  explicit RealFences(Complete complete);
  ~RealFences() override;
  RealFences(const RealFences&) = delete;
  RealFences& operator=(const RealFences&) = delete;

  // The daemon's mapping of a member's page; replaces an earlier one.
  void add_member(EngineId engine, uint32_t member, cuda::Timeline timeline);
  // A last look: what has passed is reported, every other watch ends. Post EngineGone after this.
  void engine_gone(EngineId engine);

  // A fence of an unknown member or word never passes: nothing is kept of it. Beyond
  // limits::kWatchedFences of one engine a watch is dropped: that engine has broken the protocol
  // and only hurts itself.
  void watch(EngineId engine, const Fence& fence) override;

  size_t watched() const;

 private:
  using Member = std::pair<EngineId, uint32_t>;

  void work();
  bool passed(EngineId engine, const Fence& fence) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void report_passed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool has_work() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !watches_.empty();
  }

  const Complete complete_;
  mutable absl::Mutex mutex_;
  std::map<Member, cuda::Timeline> members_ ABSL_GUARDED_BY(mutex_);
  std::map<EngineId, std::vector<Fence>> watches_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;  // last
};

}  // namespace memdecay::reactor
