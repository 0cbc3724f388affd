// Timeline: a mapped timeline page (proto/contract/timeline_page.h) with sleeping and waking.
// signal() stores a word and wakes futex waiters in any process; wait() sleeps until the fence has
// passed or the deadline is over. A producer that only stores (a GPU stream) is noticed within
// kPollInterval.
// Thread: any, on one object; it is a mapping with atomic words. Invariant: the memfd is sealed at
// kTimelineBytes. Not here: which fences there are and what waits for them.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device.h"
#include "proto/contract/clock.h"
#include "proto/contract/timeline_page.h"

namespace memdecay::cuda {

inline constexpr Duration kPollInterval{1'000'000};

class Timeline {
 public:
  // Daemon: a fresh page, all words 0, and the descriptor to send to the member.
  static absl::StatusOr<Timeline> create();
  // Client: takes the received descriptor. invalid_argument: not a sealed page of that size.
  static absl::StatusOr<Timeline> adopt(Fd descriptor);

  // A further descriptor of the same page, close-on-exec, writable.
  absl::StatusOr<Fd> share() const;

  TimelineView view() const { return TimelineView(mapping_.address()); }
  // out_of_range: no such word.
  absl::StatusOr<bool> poll(uint32_t word, uint64_t value) const;
  // Checked: the word is in range (it is the caller's own).
  void signal(uint32_t word, uint64_t value) const;
  // ok once reached; deadline after about `timeout` (never earlier than that, unless the word keeps
  // changing without getting there); out_of_range.
  absl::Status wait(uint32_t word, uint64_t value, Duration timeout) const;

 private:
  Timeline(Fd descriptor, Mapping mapping)
      : descriptor_(std::move(descriptor)), mapping_(std::move(mapping)) {}

  Fd descriptor_;
  Mapping mapping_;
};

}  // namespace memdecay::cuda
