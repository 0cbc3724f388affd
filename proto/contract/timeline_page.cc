// Atomic access to the words of a timeline page (see timeline_page.h).
#include "proto/contract/timeline_page.h"

#include <atomic>

#include "proto/contract/check.h"

namespace memdecay {

static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);

TimelineView::TimelineView(void* page) : words_(static_cast<uint64_t*>(page)) {
  MEMDECAY_CHECK(page != nullptr);
  MEMDECAY_CHECK(reinterpret_cast<uintptr_t>(page) % alignof(uint64_t) == 0);
}

uint64_t* TimelineView::address(uint32_t word) const {
  MEMDECAY_CHECK(words_ != nullptr && in_range(word));
  return words_ + word;
}

uint64_t TimelineView::load(uint32_t word) const {
  return std::atomic_ref<uint64_t>(*address(word)).load(std::memory_order_acquire);
}

void TimelineView::store(uint32_t word, uint64_t value) const {
  std::atomic_ref<uint64_t>(*address(word)).store(value, std::memory_order_release);
}

}  // namespace memdecay
