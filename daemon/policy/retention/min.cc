// `min`: the entry whose next use lies farthest ahead leaves (Belady, IBM Systems Journal 5(2),
// 1966), what comes in excepted: every block that was used becomes resident. It needs the future,
// so it is a yardstick for replays and no policy of a tier.
// Thread: the owner's. Memory: the entries held. O(log n) a use.
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "daemon/policy/retention/lists.h"
#include "daemon/policy/retention/makers.h"

namespace memdecay::retention {
namespace {

class Min final : public Retention {
 public:
  size_t size() const override { return next_.size(); }
  bool holds(EntryKey key) const override { return next_.contains(key); }

  void touch(const Use& use) override {
    const auto found = next_.find(use.key);
    if (found == next_.end()) return;
    order_.erase({found->second, use.key});
    found->second = use.next;
    order_.insert({use.next, use.key});
  }
  std::optional<EntryKey> evict(MayLeave may_leave) override {
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
      const EntryKey key = at->second;
      if (!may_leave(key)) continue;
      remove(key);
      return key;
    }
    return std::nullopt;
  }
  void insert(const Use& use) override {
    next_.emplace(use.key, use.next);
    order_.insert({use.next, use.key});
  }
  void remove(EntryKey key) override {
    const auto found = next_.find(key);
    if (found == next_.end()) return;
    order_.erase({found->second, key});
    next_.erase(found);
  }
  size_t bytes() const override {
    // A B-tree's nodes are between half and all full.
    return sizeof(Min) + map_bytes(next_) + order_.size() * sizeof(std::pair<Reference, EntryKey>);
  }

 private:
  absl::flat_hash_map<EntryKey, Reference> next_;
  absl::btree_set<std::pair<Reference, EntryKey>> order_;
};

}  // namespace

std::unique_ptr<Retention> make_min() { return std::make_unique<Min>(); }

}  // namespace memdecay::retention
