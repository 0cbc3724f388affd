// The timeline page: 512 words of 64 bits in a memfd, one page per engine member, mapped by engine
// and daemon. A fence (ids.h) is "word w has reached value v", compared cyclically.
// Words 0 .. kEngineWords-1 are written by the engine (one per stream), the rest by the daemon; a
// word has one writer and only moves forward. All words start at 0.
// Why host memory: a GPU stream can write and wait on it, the CPU can read it without CUDA, and the
// waits of a dead producer can be released by a plain store.
// Thread: TimelineView is a pointer; its loads and stores are atomic, any thread.
// Not here: creating, mapping, sleeping and waking (cuda/timeline.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace memdecay {

inline constexpr size_t kTimelineBytes = 4096;
inline constexpr uint32_t kTimelineWords = 512;
inline constexpr uint32_t kEngineWords = 256;

static_assert(kTimelineWords * sizeof(uint64_t) == kTimelineBytes);
static_assert(kEngineWords < kTimelineWords);

// GEQ on a circle: true while `current` is less than 2^63 steps past `wanted`.
constexpr bool fence_reached(uint64_t current, uint64_t wanted) {
  return static_cast<int64_t>(current - wanted) >= 0;
}

// Borrowed view of a mapped page. Invariant: words_ points at kTimelineBytes, 8-byte aligned.
class TimelineView {
 public:
  TimelineView() = default;
  // `page` must stay mapped as long as the view is used; checked: not null, aligned.
  explicit TimelineView(void* page);

  bool valid() const { return words_ != nullptr; }
  static constexpr bool in_range(uint32_t word) { return word < kTimelineWords; }

  // Both check in_range: words that come from a peer are to be tested before.
  uint64_t load(uint32_t word) const;
  void store(uint32_t word, uint64_t value) const;
  bool reached(uint32_t word, uint64_t value) const { return fence_reached(load(word), value); }
  uint64_t* address(uint32_t word) const;

 private:
  uint64_t* words_ = nullptr;
};

}  // namespace memdecay
