// Uses that fade (see history.h).
#include "daemon/policy/retention/history.h"

#include <algorithm>

#include "daemon/policy/math.h"

namespace memdecay::retention {
namespace {

constexpr size_t kHistoryACapacity = 8;
constexpr int kForgetAUse = 2;  // keys at a new one, where the limit was lowered

}  // namespace

size_t history_limit(size_t capacity) {
  return std::max(kHistoryACapacity * capacity, kLeastHistory);
}

double History::after(const Uses& uses, int64_t at_ms) const {
  if (uses.count == 0) return 1;
  const auto lives =
      static_cast<double>(at_ms - uses.at_ms) / static_cast<double>(half_life_.milliseconds());
  return uses.count * policy::fixed_exp2(-lives) + 1;
}

double History::touch(EntryKey key, Instant at, absl::FunctionRef<Uses()> otherwise) {
  const int64_t at_ms = at.nanoseconds / 1'000'000;
  const auto found = where_.find(key);
  if (found != where_.end()) {
    Uses& uses = nodes_[found->second].uses;
    uses = {after(uses, at_ms), at_ms};
    nodes_.unlink(order_, found->second);
    nodes_.push_newest(order_, found->second);
    return uses.count;
  }
  for (int gone = 0; gone < kForgetAUse && order_.size >= limit_; ++gone) forget_oldest();
  const uint32_t node = nodes_.make({key, {after(otherwise(), at_ms), at_ms}});
  nodes_.push_newest(order_, node);
  where_.emplace(key, node);
  return nodes_[node].uses.count;
}

void History::forget_oldest() {
  const uint32_t oldest = order_.oldest;
  where_.erase(nodes_[oldest].key);
  nodes_.unlink(order_, oldest);
  nodes_.drop(oldest);
}

double History::count(EntryKey key) const {
  const auto found = where_.find(key);
  return found == where_.end() ? 0 : nodes_[found->second].uses.count;
}

}  // namespace memdecay::retention
