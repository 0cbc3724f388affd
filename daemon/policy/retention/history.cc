// Uses that fade (see history.h).
#include "daemon/policy/retention/history.h"

#include "daemon/policy/math.h"

namespace memdecay::retention {

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
  if (order_.size >= limit_) {
    const uint32_t oldest = order_.oldest;
    where_.erase(nodes_[oldest].key);
    nodes_.unlink(order_, oldest);
    nodes_.drop(oldest);
  }
  const uint32_t node = nodes_.make({key, {after(otherwise(), at_ms), at_ms}});
  nodes_.push_newest(order_, node);
  where_.emplace(key, node);
  return nodes_[node].uses.count;
}

double History::count(EntryKey key) const {
  const auto found = where_.find(key);
  return found == where_.end() ? 0 : nodes_[found->second].uses.count;
}

}  // namespace memdecay::retention
