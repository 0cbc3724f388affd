// The `count` victims that go first out of many, without sorting the many: candidates gather until
// there are twice as many as wanted, then the later half is thrown away and what is left bounds
// what may still enter. Thread: a value. Not here: which pages are candidates (policy.cc).
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/policy/policy.h"

namespace memdecay::policy {

// The order in which pages go, but for the page itself.
inline bool goes_strictly_before(const Victim& a, const Victim& b) {
  if (a.in_grace != b.in_grace) return b.in_grace;
  if (a.stage != b.stage) return a.stage < b.stage;
  if (a.stage == Stage::kOldest) return false;  // by page
  if (a.score != b.score) return a.score < b.score;
  return a.tref < b.tref;
}

inline bool goes_before(const Victim& a, const Victim& b) {
  if (goes_strictly_before(a, b)) return true;
  return !goes_strictly_before(b, a) && a.page < b.page;
}

class Lowest {
 public:
  // Takes only what goes before `bound`.
  Lowest(size_t count, std::optional<Victim> bound) : count_(count), bound_(std::move(bound)) {}

  // No page with a higher score passes; infinity where the score alone does not decide.
  double score_limit() const {
    return by_score() ? bound_->score : std::numeric_limits<double>::infinity();
  }
  // No page from `first` on passes whose score is at least `score` and whose tref is at least
  // `tref`.
  bool none_passes(double score, Step tref, PageIndex first) const {
    return by_score() && !goes_before({.page = first, .score = score, .tref = tref}, *bound_);
  }
  bool passes(const Victim& victim) const { return !bound_ || goes_before(victim, *bound_); }
  // What is not kept goes after it, or is it. Nothing: everything was kept so far.
  const std::optional<Victim>& bound() const { return bound_; }

  void add(const Victim& victim) {
    kept_.push_back(victim);
    if (kept_.size() >= 2 * count_ + kRoom) shrink();
  }

  // Ascending; at most `count`. Leaves nothing behind but the bound.
  std::vector<Victim> take() {
    if (kept_.size() > count_) shrink();
    std::sort(kept_.begin(), kept_.end(), goes_before);
    return std::move(kept_);
  }

 private:
  static constexpr size_t kRoom = 64;

  // What scores higher than the bound cannot pass.
  bool by_score() const {
    return bound_.has_value() && !bound_->in_grace && bound_->stage == Stage::kLow;
  }

  void shrink() {
    if (count_ == 0) return kept_.clear();
    const auto last = kept_.begin() + static_cast<std::ptrdiff_t>(count_) - 1;
    std::nth_element(kept_.begin(), last, kept_.end(), goes_before);
    bound_ = *last;
    kept_.resize(count_);
  }

  size_t count_;
  std::optional<Victim> bound_;
  std::vector<Victim> kept_;
};

}  // namespace memdecay::policy
