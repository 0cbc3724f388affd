// `lru`: the entry that was used longest ago leaves. What the replay's reference ratios are made
// with: in one request the root was used before the leaf and leaves before it.
// Thread: the owner's. Memory: the entries held. O(1) a use.
#include "absl/container/flat_hash_map.h"
#include "daemon/policy/retention/lists.h"
#include "daemon/policy/retention/makers.h"

namespace memdecay::retention {
namespace {

class Lru final : public Retention {
 public:
  size_t size() const override { return order_.size; }
  bool holds(EntryKey key) const override { return where_.contains(key); }

  void touch(const Use& use) override {
    const auto found = where_.find(use.key);
    if (found == where_.end()) return;
    nodes_.unlink(order_, found->second);
    nodes_.push_newest(order_, found->second);
  }
  std::optional<EntryKey> evict(MayLeave may_leave) override {
    for (uint32_t node = order_.oldest; node != kNoNode; node = nodes_.newer(node)) {
      const EntryKey key = nodes_[node];
      if (!may_leave(key)) continue;
      remove(key);
      return key;
    }
    return std::nullopt;
  }
  void insert(const Use& use) override {
    const uint32_t node = nodes_.make(use.key);
    nodes_.push_newest(order_, node);
    where_.emplace(use.key, node);
  }
  void remove(EntryKey key) override {
    const auto found = where_.find(key);
    if (found == where_.end()) return;
    nodes_.unlink(order_, found->second);
    nodes_.drop(found->second);
    where_.erase(found);
  }
  size_t bytes() const override { return sizeof(Lru) + nodes_.bytes() + map_bytes(where_); }

 private:
  Lists<EntryKey> nodes_;
  List order_;
  absl::flat_hash_map<EntryKey, uint32_t> where_;
};

}  // namespace

std::unique_ptr<Retention> make_lru() { return std::make_unique<Lru>(); }

}  // namespace memdecay::retention
