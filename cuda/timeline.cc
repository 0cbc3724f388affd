// Creating, mapping and sleeping on timeline pages (see timeline.h).
// A futex is 32 bits wide: waiters sleep on the low half of a word. A producer that cannot wake (a
// GPU stream, a client without futex) is noticed because no sleep is longer than kPollInterval.
// Time is counted in those slices, so that no clock is read.
#include "cuda/timeline.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "cuda/sealed_memory.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {
namespace {

static_assert(std::endian::native == std::endian::little, "the low half of a word comes first");

// What a wake-up that was no time-out is counted as: a peer that keeps changing the word cannot
// hold a waiter for ever.
constexpr Duration kWakeCost{1'000};

absl::Status failed(std::string asked) {
  return make_error(ErrorCode::kResourceExhausted, std::move(asked), std::strerror(errno));
}

absl::StatusOr<Mapping> map_page(int fd) {
  std::optional<Mapping> mapping =
      map_sealed_memory(fd, kTimelineBytes, Access::kReadWrite, Prefault::kYes);
  if (!mapping) return failed("map a timeline page");
  return *std::move(mapping);
}

absl::Status no_such_word(uint32_t word) {
  return make_error(ErrorCode::kOutOfRange, absl::StrCat("timeline word ", word),
                    absl::StrCat(kTimelineWords, " words"));
}

uint32_t* futex_of(const TimelineView& view, uint32_t word) {
  return reinterpret_cast<uint32_t*>(view.address(word));
}

}  // namespace

absl::StatusOr<Timeline> Timeline::create() {
  Fd descriptor = create_sealed_memory("memdecay-timeline", kTimelineBytes, Prefault::kNo);
  if (!descriptor) return failed("create a timeline page");
  absl::StatusOr<Mapping> mapping = map_page(descriptor.get());
  if (!mapping.ok()) return mapping.status();
  return Timeline(std::move(descriptor), *std::move(mapping));
}

absl::StatusOr<Timeline> Timeline::adopt(Fd descriptor) {
  // Without the seals the sender could shorten the page under us: SIGBUS.
  if (!is_sealed_memory(descriptor.get(), kTimelineBytes)) {
    return make_error(ErrorCode::kInvalidArgument, "adopt a timeline page",
                      "not a sealed memfd of 4096 bytes");
  }
  absl::StatusOr<Mapping> mapping = map_page(descriptor.get());
  if (!mapping.ok()) return mapping.status();
  return Timeline(std::move(descriptor), *std::move(mapping));
}

absl::StatusOr<Fd> Timeline::share() const {
  Fd copy(::fcntl(descriptor_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return failed("share a timeline page");
  return copy;
}

absl::StatusOr<bool> Timeline::poll(uint32_t word, uint64_t value) const {
  if (!TimelineView::in_range(word)) return no_such_word(word);
  return view().reached(word, value);
}

void Timeline::signal(uint32_t word, uint64_t value) const {
  const TimelineView page = view();
  page.store(word, value);
  // Not FUTEX_PRIVATE: waiters live in other processes.
  ::syscall(SYS_futex, futex_of(page, word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

absl::Status Timeline::wait(uint32_t word, uint64_t value, Duration timeout) const {
  if (!TimelineView::in_range(word)) return no_such_word(word);
  const TimelineView page = view();
  Duration left = timeout;
  uint64_t current = page.load(word);
  while (!fence_reached(current, value)) {
    if (left.nanoseconds <= 0) {
      return make_error(ErrorCode::kDeadline,
                        absl::StrCat("fence ", value, " on timeline word ", word),
                        absl::StrCat("it stands at ", current));
    }
    const Duration slice = std::min(left, kPollInterval);
    const timespec relative{.tv_sec = 0, .tv_nsec = slice.nanoseconds};
    const long result =
        ::syscall(SYS_futex, futex_of(page, word), FUTEX_WAIT,
                  static_cast<uint32_t>(current & 0xffffffffu), &relative, nullptr, 0);
    const bool slept = result != 0 && errno == ETIMEDOUT;
    left.nanoseconds -= slept ? slice.nanoseconds : kWakeCost.nanoseconds;
    current = page.load(word);
  }
  return absl::OkStatus();
}

}  // namespace memdecay::cuda
