// How long things take, seen from the reactor's steps: decisions, copies, fences. Histograms with
// fixed bounds, so that a scrape costs nothing.
// Thread: the reactor's. Bound: kMostOpen copies and fences are timed at once; others are not.
// Not here: counting what happened (ledger).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

#include "daemon/reactor/reactor.h"
#include "proto/contract/clock.h"

namespace memdecay::server {

class Histogram {
 public:
  // Upper bounds in seconds; what is above the last one is counted in total only.
  static constexpr std::array<double, 12> kBounds = {1e-6, 5e-6, 2e-5, 1e-4, 5e-4, 2e-3,
                                                     1e-2, 5e-2, 0.2,  1.0,  5.0,  30.0};

  void add(Duration value);
  const std::array<uint64_t, kBounds.size()>& counts() const { return counts_; }  // not cumulative
  uint64_t total() const { return total_; }
  double sum_seconds() const { return sum_seconds_; }

 private:
  std::array<uint64_t, kBounds.size()> counts_{};
  uint64_t total_ = 0;
  double sum_seconds_ = 0;
};

class StepTimes {
 public:
  void observe(const reactor::StepReport& step);

  const Histogram& decisions() const { return decisions_; }
  const Histogram& copies() const { return copies_; }
  const Histogram& fences() const { return fences_; }

 private:
  static constexpr size_t kMostOpen = 65536;

  Histogram decisions_;
  Histogram copies_;
  Histogram fences_;
  std::map<CopyId, Instant> open_copies_;
  std::map<std::tuple<EngineId, Fence>, Instant> open_fences_;
};

}  // namespace memdecay::server
