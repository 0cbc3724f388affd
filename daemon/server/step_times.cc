// See step_times.h.
#include "daemon/server/step_times.h"

#include <variant>

namespace memdecay::server {

void Histogram::add(Duration value) {
  const double seconds = value.seconds();
  ++total_;
  sum_seconds_ += seconds;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    if (seconds > kBounds[i]) continue;
    ++counts_[i];
    return;
  }
}

void StepTimes::observe(const reactor::StepReport& step) {
  decisions_.add(step.took);
  if (const auto* done = std::get_if<ledger::CopyDone>(&step.event)) {
    const auto open = open_copies_.find(done->copy);
    if (open != open_copies_.end()) {
      copies_.add(step.at - open->second);
      open_copies_.erase(open);
    }
  } else if (const auto* passed = std::get_if<ledger::FencePassed>(&step.event)) {
    const auto open = open_fences_.find({passed->engine, passed->fence});
    if (open != open_fences_.end()) {
      fences_.add(step.at - open->second);
      open_fences_.erase(open);
    }
  } else if (const auto* gone = std::get_if<ledger::EngineGone>(&step.event)) {
    const auto first = open_fences_.lower_bound({gone->engine, Fence{}});
    auto last = first;
    while (last != open_fences_.end() && std::get<EngineId>(last->first) == gone->engine) ++last;
    open_fences_.erase(first, last);
  }
  for (const ledger::Effect& effect : step.effects) {
    if (const auto* copy = std::get_if<ledger::StartCopy>(&effect)) {
      if (open_copies_.size() < kMostOpen) open_copies_.emplace(copy->copy, step.at);
    } else if (const auto* cancel = std::get_if<ledger::CancelCopy>(&effect)) {
      open_copies_.erase(cancel->copy);
    } else if (const auto* watch = std::get_if<ledger::WatchFence>(&effect)) {
      if (open_fences_.size() < kMostOpen) {
        open_fences_.try_emplace({watch->engine, watch->fence}, step.at);
      }
    }
  }
}

}  // namespace memdecay::server
