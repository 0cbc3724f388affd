// A trace through tiers: every (policy, capacity) sees the same requests in the same order, blocks
// of a request in list order. Two ratios over all block references:
//   prefix hits  the block was held and so were all earlier blocks of its request, which is what
//                an engine can use;
//   block hits   it was held.
// Every block that was used becomes resident, unless the policy does not admit it.
// `decay` is run once a salt; its row is the mean over the salts, with the spread.
// Thread: one. Not here: files (trace.h), printing (report.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/replay/distinct.h"
#include "client/ctl/replay/future.h"
#include "client/ctl/replay/trace.h"
#include "daemon/policy/retention/retention.h"

namespace memdecay::ctl {

struct ReplayPlan {
  std::vector<std::string> policies;
  std::vector<uint64_t> capacities;  // in blocks
  uint32_t salts = 10;               // runs of `decay`, with salts 1, 2, ...
};

struct ReplayRow {
  std::string policy;
  uint64_t capacity = 0;
  double prefix_hit_ratio = 0;
  double block_hit_ratio = 0;
  double seconds = 0;  // of the processor, over all salts
  uint32_t salts = 0;  // 0: the policy has none
  double prefix_lowest = 0;
  double prefix_highest = 0;
  uint64_t bytes = 0;  // of the policy's memory at the end, of one salt
};

struct ReplayResult {
  std::vector<ReplayRow> rows;  // by policy as asked, inside it by capacity as asked
  uint64_t requests = 0;
  uint64_t blocks = 0;  // references
  uint64_t stores = 0;  // blocks that were stored, and that nobody had asked for
  uint64_t unique = 0;
  bool unique_estimated = false;
};

class Replay {
 public:
  using Clock = std::function<Instant()>;  // processor time

  // invalid_argument: unknown policy (the known ones are listed), capacity 0, nothing to do.
  static absl::StatusOr<Replay> make(const ReplayPlan& plan, Clock clock);

  static bool needs_future(const ReplayPlan& plan);
  // Before the first request, and closed, if the plan needs it.
  void set_future(Future future) { future_ = std::move(future); }

  // data_loss: the trace is longer than when it was read for the future.
  absl::Status add(const TraceRequest& request);
  ReplayResult finish();

 private:
  struct Tier {
    size_t row = 0;
    std::unique_ptr<retention::Retention> policy;
    size_t capacity = 0;
    uint64_t prefix_hits = 0;
    uint64_t block_hits = 0;
    int64_t spent_ns = 0;
  };

  explicit Replay(Clock clock) : clock_(std::move(clock)) {}
  // Requests are run in batches, a tier at a time: the clock is read rarely, and a tier's memory
  // stays in the processor's caches.
  void run_batch();
  void run_batch(Tier& tier) const;

  Clock clock_;
  ReplayResult result_;
  std::vector<Tier> tiers_;
  std::optional<Future> future_;
  Distinct distinct_;
  // Which hits count: a request's first block begins a prefix, a store's are nobody's.
  enum class Part : uint8_t { kFirst, kNext, kStore };
  struct Counted {
    retention::Use use;
    Part part = Part::kFirst;
  };
  std::vector<Counted> batch_;
  uint64_t uses_ = 0;    // references and stores
  uint64_t chains_ = 0;  // requests and stores
};

}  // namespace memdecay::ctl
