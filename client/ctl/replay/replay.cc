// Counting hits (see replay.h).
#include "client/ctl/replay/replay.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

constexpr size_t kBatch = 16'384;  // uses
constexpr uint32_t kMostSalts = 1000;
constexpr size_t kMostTiers = 10'000;

absl::Status nothing_asked(std::string there, std::string todo) {
  return make_error(ErrorCode::kInvalidArgument, "a replay", std::move(there), std::move(todo));
}

}  // namespace

bool Replay::needs_future(const ReplayPlan& plan) {
  return std::find(plan.policies.begin(), plan.policies.end(), "min") != plan.policies.end();
}

absl::StatusOr<Replay> Replay::make(const ReplayPlan& plan, Clock clock) {
  if (plan.policies.empty() || plan.capacities.empty()) {
    return nothing_asked("no policy or no capacity is given", "name at least one of each");
  }
  if (plan.salts == 0 || plan.salts > kMostSalts ||
      plan.policies.size() * plan.capacities.size() * plan.salts > kMostTiers) {
    return nothing_asked(
        absl::StrCat(plan.salts, " salts for ", plan.policies.size(), " policies and ",
                     plan.capacities.size(), " capacities"),
        absl::StrCat("use 1 to ", kMostSalts, " salts and at most ", kMostTiers, " runs in all"));
  }
  Replay replay(std::move(clock));
  for (const std::string& policy : plan.policies) {
    for (const uint64_t capacity : plan.capacities) {
      const uint32_t salts = policy == "decay" ? plan.salts : 0;
      for (uint64_t salt = 1; salt <= std::max(1u, salts); ++salt) {
        retention::RetentionOptions options;
        options.name = policy;
        options.capacity = capacity;
        options.salt = salt;
        auto made = retention::make_retention(options);
        if (!made.ok()) return made.status();
        Tier tier;
        tier.row = replay.result_.rows.size();
        tier.policy = *std::move(made);
        tier.capacity = capacity;
        replay.tiers_.push_back(std::move(tier));
      }
      ReplayRow row;
      row.policy = policy;
      row.capacity = capacity;
      row.salts = salts;
      replay.result_.rows.push_back(std::move(row));
    }
  }
  return replay;
}

absl::Status Replay::add(const TraceRequest& request) {
  const size_t count = request.blocks.size();
  if (future_ && uses_ + count > future_->size()) {
    return make_error(ErrorCode::kDataLoss, "the trace a second time",
                      "it is longer than it was when it was read for min",
                      "replay a file that nobody writes to");
  }
  const bool stored = request.kind == TraceRequest::Kind::kStored;
  for (size_t i = 0; i < count; ++i) {
    retention::Use use;
    use.key = request.blocks[i];
    use.at = request.at;
    use.chain = chains_;
    use.depth = request.depth + static_cast<uint32_t>(i);
    if (i + 1 == count && request.tail == TraceRequest::Tail::kPartial) {
      use.body = retention::Body::kPartialTail;
    }
    if (future_) use.next = future_->next(uses_ + i);
    distinct_.add(use.key);
    const Part part = stored ? Part::kStore : i == 0 ? Part::kFirst : Part::kNext;
    batch_.push_back({use, part});
  }
  uses_ += count;
  ++chains_;
  (stored ? result_.stores : result_.blocks) += count;
  result_.requests += !stored;
  if (batch_.size() >= kBatch) run_batch();
  return absl::OkStatus();
}

void Replay::run_batch() {
  for (Tier& tier : tiers_) {
    const Instant before = clock_();
    run_batch(tier);
    tier.spent_ns += (clock_() - before).nanoseconds;
  }
  batch_.clear();
}

void Replay::run_batch(Tier& tier) const {
  bool prefix = true;
  for (const auto& [use, part] : batch_) {
    const bool hit = retention::use_entry(*tier.policy, use, tier.capacity);
    if (part == Part::kStore) continue;
    prefix = hit && (prefix || part == Part::kFirst);
    tier.block_hits += hit;
    tier.prefix_hits += prefix;
  }
}

ReplayResult Replay::finish() {
  run_batch();
  const double blocks = static_cast<double>(std::max<uint64_t>(1, result_.blocks));
  for (const Tier& tier : tiers_) {
    ReplayRow& row = result_.rows[tier.row];
    const double prefix = static_cast<double>(tier.prefix_hits) / blocks;
    const double runs = std::max(1u, row.salts);
    const bool first = row.seconds == 0 && row.bytes == 0;
    row.prefix_lowest = first ? prefix : std::min(row.prefix_lowest, prefix);
    row.prefix_highest = std::max(row.prefix_highest, prefix);
    row.prefix_hit_ratio += prefix / runs;
    row.block_hit_ratio += static_cast<double>(tier.block_hits) / blocks / runs;
    row.seconds += static_cast<double>(tier.spent_ns) * 1e-9;
    row.bytes = tier.policy->bytes();
  }
  result_.unique = distinct_.count();
  result_.unique_estimated = distinct_.estimated();
  return std::move(result_);
}

}  // namespace memdecay::ctl
