// See real_fences.h.
#include "daemon/reactor/real_fences.h"

#include "absl/time/time.h"
#include "daemon/base/limits.h"

namespace memdecay::reactor {

RealFences::RealFences(Complete complete)
    : complete_(std::move(complete)), watcher_([this] { work(); }) {}

RealFences::~RealFences() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  watcher_.join();
}

void RealFences::add_member(EngineId engine, uint32_t member, cuda::Timeline timeline) {
  const absl::MutexLock lock(&mutex_);
  members_.insert_or_assign({engine, member}, std::move(timeline));
}

bool RealFences::passed(EngineId engine, const Fence& fence) const {
  if (fence.value == 0) return true;
  const auto member = members_.find({engine, fence.member});
  if (member == members_.end()) return false;
  const absl::StatusOr<bool> reached = member->second.poll(fence.word, fence.value);
  return reached.ok() && *reached;
}

void RealFences::watch(EngineId engine, const Fence& fence) {
  const absl::MutexLock lock(&mutex_);
  if (passed(engine, fence)) {
    complete_(ledger::FencePassed{engine, fence});
    return;
  }
  // What can never pass is not looked at for ever.
  if (!members_.contains({engine, fence.member}) || !TimelineView::in_range(fence.word)) return;
  std::vector<Fence>& watches = watches_[engine];
  if (watches.size() < base::limits::kWatchedFences) watches.push_back(fence);
}

void RealFences::report_passed() {
  for (auto at = watches_.begin(); at != watches_.end();) {
    const EngineId engine = at->first;
    std::vector<Fence> left;
    for (const Fence& fence : at->second) {
      if (passed(engine, fence)) {
        complete_(ledger::FencePassed{engine, fence});
      } else {
        left.push_back(fence);
      }
    }
    at->second = std::move(left);
    at = at->second.empty() ? watches_.erase(at) : std::next(at);
  }
}

void RealFences::engine_gone(EngineId engine) {
  const absl::MutexLock lock(&mutex_);
  report_passed();
  watches_.erase(engine);
  members_.erase(members_.lower_bound({engine, 0}), members_.upper_bound({engine, UINT32_MAX}));
}

size_t RealFences::watched() const {
  const absl::MutexLock lock(&mutex_);
  size_t count = 0;
  for (const auto& [engine, fences] : watches_) count += fences.size();
  return count;
}

void RealFences::work() {
  const absl::MutexLock lock(&mutex_);
  while (true) {
    mutex_.Await(absl::Condition(this, &RealFences::has_work));
    if (stopping_) return;
    report_passed();
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_),
                            absl::Nanoseconds(base::limits::kFencePoll.nanoseconds));
  }
}

}  // namespace memdecay::reactor
