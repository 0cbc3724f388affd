// Copies of pages out of device slots and back, as memory bandwidth (see sections.h).
//
// All ways move the same pages in the same order: from the slots of a real slab (a memfd, as pages
// are) into private memory; the working set is several times the last cache. The host tier's ways
// go through the copier as the daemon's do: reserve or find the record, the mover's thread copies
// with the checksum, commit or verify.
// A round's figure is that of its median page, so that other programs' turns do not show.
// Thread: one, and the mover's.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "cuda/checksum.h"
#include "cuda/host_device.h"
#include "daemon/tiers/copier.h"
#include "daemon/tiers/device_tier.h"
#include "daemon/tiers/host_tier.h"
#include "proto/contract/check.h"
#include "tests/bench/sections.h"

namespace memdecay::bench {
namespace {

constexpr SlabId kSlab{1};
constexpr uint64_t kLargeCall = uint64_t{32} << 20;
constexpr uint64_t kRoom = uint64_t{1} << 20;
// Copies started and not finished: what keeps a mover busy, few enough to be in steady state.
constexpr size_t kInFlight = 8;

// Private memory as the host tier has it.
class PrivateMemory {
 public:
  explicit PrivateMemory(uint64_t bytes) : bytes_(bytes) {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MEMDECAY_CHECK(memory != MAP_FAILED);
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    start_ = static_cast<std::byte*>(memory);
  }
  PrivateMemory(const PrivateMemory&) = delete;
  PrivateMemory& operator=(const PrivateMemory&) = delete;
  ~PrivateMemory() { ::munmap(start_, bytes_); }
  std::byte* start() const { return start_; }

 private:
  uint64_t bytes_;
  std::byte* start_;
};

struct Ended {
  double at = 0;  // nanoseconds
  tiers::CopyOutcome outcome;
};

// Outcomes on their way from the mover's thread.
class Outcomes {
 public:
  void put(const tiers::CopyOutcome& outcome) {
    const double at = since_.nanoseconds();
    absl::MutexLock lock(&mutex_);
    waiting_.push_back({at, outcome});
  }
  Ended take() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](std::deque<Ended>* waiting) { return !waiting->empty(); }, &waiting_));
    Ended ended = std::move(waiting_.front());
    waiting_.pop_front();
    return ended;
  }

 private:
  const Stopwatch since_;
  absl::Mutex mutex_;
  std::deque<Ended> waiting_ ABSL_GUARDED_BY(mutex_);
};

class Copies {
 public:
  Copies(uint64_t page_bytes, uint64_t working_bytes)
      : page_bytes_(page_bytes),
        pages_(static_cast<uint32_t>(working_bytes / page_bytes)),
        target_(pages_ * page_bytes) {
    auto device = cuda::create_host_device({.limit_bytes = pages_ * page_bytes + kRoom});
    MEMDECAY_CHECK(device.ok());
    device_ = *std::move(device);
    slabs_ = std::make_unique<tiers::DeviceTier>(*device_);
    MEMDECAY_CHECK(slabs_->create(kSlab, {.page_bytes = page_bytes, .pages = pages_}).ok());
    auto copier = tiers::Copier::create(
        *device_, *slabs_, host_,
        [this](const tiers::CopyOutcome& outcome) { outcomes_.put(outcome); });
    MEMDECAY_CHECK(copier.ok());
    copier_ = *std::move(copier);
    for (uint32_t page = 0; page < pages_; ++page) {
      std::memset(slot(page), static_cast<int>(page * 7 + 1), page_bytes_);
    }
    put();  // so that there is something to get
  }

  double plain() {
    return each_page([this](uint32_t page) {
      std::memcpy(target(page), slot(page), page_bytes_);
      asm volatile("" : : "r"(target(page)) : "memory");
    });
  }

  // Calls so large that the C library writes past the cache; the best of them, because one takes
  // longer than a core is ours on a busy machine.
  double large() {
    std::vector<double> samples;
    const uint64_t all = pages_ * page_bytes_;
    const uint64_t call = std::min(all, kLargeCall);
    for (uint64_t at = 0; at + call <= all; at += call) {
      const Stopwatch watch;
      std::memcpy(target(0) + at, slot(0) + at, call);
      asm volatile("" : : "r"(target(0)) : "memory");
      samples.push_back(watch.nanoseconds());
    }
    return static_cast<double>(call) / quantile(samples, 0);
  }

  double fused() {
    return each_page([this](uint32_t page) {
      const Checksum sum =
          cuda::copy_with_checksum(std::span(target(page), page_bytes_),
                                   std::span<const std::byte>(slot(page), page_bytes_));
      asm volatile("" : : "r"(sum.low) : "memory");
    });
  }

  double put() { return through_copier(tiers::CopyDirection::kToHost); }
  double get() { return through_copier(tiers::CopyDirection::kToDevice); }

 private:
  template <typename Copy>
  double each_page(Copy copy) const {
    std::vector<double> samples;
    for (uint32_t page = 0; page < pages_; ++page) {
      const Stopwatch watch;
      copy(page);
      samples.push_back(watch.nanoseconds());
    }
    return bandwidth(samples);
  }

  // A page's time is from one end to the next, on the mover's thread.
  double through_copier(tiers::CopyDirection direction) {
    uint32_t started = 0;
    ends_.clear();
    for (uint32_t finished = 0; finished < pages_; ++finished) {
      while (started < pages_ && copier_->in_flight() < kInFlight) {
        copier_->start({.id = CopyId{++last_copy_},
                        .direction = direction,
                        .content = ContentId{started + 1},
                        .slab = kSlab,
                        .index = started,
                        .bytes = page_bytes_});
        ++started;
      }
      const Ended ended = outcomes_.take();
      ends_.push_back(ended.at);
      MEMDECAY_CHECK(copier_->finish(ended.outcome).status.ok());
    }
    std::vector<double> samples;
    for (size_t i = 1; i < ends_.size(); ++i) samples.push_back(ends_[i] - ends_[i - 1]);
    return bandwidth(samples);
  }

  // Bytes per nanosecond of the median page: a page during which another program got the core does
  // not count.
  double bandwidth(const std::vector<double>& nanoseconds) const {
    return static_cast<double>(page_bytes_) / quantile(nanoseconds, 0.5);
  }
  std::byte* slot(uint32_t page) const { return *slabs_->address(kSlab, page); }
  std::byte* target(uint32_t page) const { return target_.start() + page * page_bytes_; }

  const uint64_t page_bytes_;
  const uint32_t pages_;
  PrivateMemory target_;
  std::unique_ptr<cuda::Device> device_;
  std::unique_ptr<tiers::DeviceTier> slabs_;
  tiers::HostTier host_{{}};
  Outcomes outcomes_;
  uint64_t last_copy_ = 0;
  std::vector<double> ends_;
  std::unique_ptr<tiers::Copier> copier_;  // last: its thread uses the others
};

void measure_pages(const BenchOptions& options, uint64_t page_bytes, Report& report) {
  const uint64_t working = uint64_t{options.pick(256u, 16u)} << 20;
  report.section(absl::StrCat("memory: ", working >> 20, " MiB in pages of ", page_bytes,
                              " bytes, out of and into device slots, one thread copies"));
  Copies copies(page_bytes, working);
  const std::vector<Way> ways = {
      {"memcpy, page by page", [&copies] { return copies.plain(); }},
      {"memcpy, 32 MiB a call, best call", [&copies] { return copies.large(); }},
      {"copy with checksum, one pass", [&copies] { return copies.fused(); }},
      {"host tier: put (mover, checksum)", [&copies] { return copies.put(); }},
      {"host tier: get (mover, verified)", [&copies] { return copies.get(); }}};
  const auto figures = take_turns(options.pick(15, 3), ways);
  for (size_t way = 0; way < ways.size(); ++way) {
    Row row{.name = ways[way].name, .figure = spread_of(figures[way]), .unit = "GB/s"};
    if (way > 0) {
      row.ratio = quantile(ratios(figures[way], figures[0]), 0.5);
      row.baseline = ways[0].name;
    }
    if (way == 2) row.goal = Goal{Goal::Side::kAtLeast, 0.85};
    report.add(std::move(row));
  }
}

}  // namespace

absl::Status measure_memory(const BenchOptions& options, Report& report) {
  for (const uint64_t page_bytes : {uint64_t{1} << 20, uint64_t{368'640}}) {
    measure_pages(options, page_bytes, report);
  }
  return absl::OkStatus();
}

}  // namespace memdecay::bench
