// See tape_queue.h.
#include "daemon/server/tape_queue.h"

#include <utility>
#include <variant>

namespace memdecay::server {
namespace {

// Memory behind an event's lists, about.
struct ListBytes {
  size_t operator()(const trace::Observed& e) const {
    return e.masses.capacity() * sizeof(trace::PageMass);
  }
  size_t operator()(const trace::Looked& e) const { return e.keys.capacity() * sizeof(uint64_t); }
  template <typename Kind>
  size_t operator()(const Kind& e) const {
    if constexpr (requires { e.runs; }) return e.runs.capacity() * sizeof(trace::RegionRun);
    if constexpr (requires { e.pages; }) return e.pages.capacity() * sizeof(PageIndex);
    return 0;
  }
};

size_t bytes_of(const trace::Event& event) {
  return sizeof(event) + std::visit(ListBytes{}, event.what);
}

}  // namespace

void TapeQueue::note_lost(uint64_t at_ms) {
  if (lost_ == lost_told_) return;
  events_.push_back({.at_ms = at_ms, .what = trace::Lost{.events = lost_ - lost_told_}});
  lost_told_ = lost_;
}

void TapeQueue::put(std::vector<trace::Event>& events) {
  if (events.empty()) return;
  bool half_full = false;
  {
    const absl::MutexLock lock(&mutex_);
    const size_t before = bytes_;
    for (trace::Event& event : events) {
      const size_t bytes = bytes_of(event);
      last_ms_ = event.at_ms;
      if (bytes_ + bytes > most_bytes_) {
        ++lost_;
        continue;
      }
      note_lost(event.at_ms);
      bytes_ += bytes;
      events_.push_back(std::move(event));
    }
    half_full = before < most_bytes_ / 2 && bytes_ >= most_bytes_ / 2;
  }
  if (half_full) wake_.ring();
}

std::vector<trace::Event> TapeQueue::take() {
  const absl::MutexLock lock(&mutex_);
  note_lost(last_ms_);
  bytes_ = 0;
  return std::exchange(events_, {});
}

uint64_t TapeQueue::lost() const {
  const absl::MutexLock lock(&mutex_);
  return lost_;
}

}  // namespace memdecay::server
