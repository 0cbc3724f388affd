// `arc`: adaptive replacement (Megiddo and Modha, USENIX FAST 2003, figure 4). T1 holds what was
// used once lately, T2 what was used more often; B1 and B2 remember the keys that left them, and a
// use of a remembered key moves the target size p of T1 towards the list that would have kept it.
// Steps are whole numbers, max(1, |B2|/|B1| rounded down) and the reverse
// (with fractions it hits less here, .1124 for .1157 at 5,000 blocks).
// The paper trims its ghosts before it replaces; here they are trimmed when the newcomer comes in,
// which leaves the same lists.
// Thread: the owner's. Memory: 2 x capacity keys. O(1) a use.
#include <algorithm>
#include <array>

#include "absl/container/flat_hash_map.h"
#include "daemon/policy/retention/lists.h"
#include "daemon/policy/retention/makers.h"

namespace memdecay::retention {
namespace {

enum Part : uint8_t { kT1, kT2, kB1, kB2 };

class Arc final : public Retention {
 public:
  explicit Arc(size_t capacity) : capacity_(capacity) {}

  size_t size() const override { return part(kT1).size + part(kT2).size; }
  bool holds(EntryKey key) const override {
    const auto found = where_.find(key);
    return found != where_.end() && nodes_[found->second].part <= kT2;
  }

  void touch(const Use& use) override {
    incoming_from_b2_ = false;
    const auto found = where_.find(use.key);
    if (found == where_.end()) return;
    const Part from = nodes_[found->second].part;
    const size_t b1 = part(kB1).size;
    const size_t b2 = part(kB2).size;
    if (from == kB1) {
      target_ = std::min(capacity_, target_ + std::max<size_t>(1, b2 / b1));
    } else if (from == kB2) {
      target_ -= std::min(target_, std::max<size_t>(1, b1 / b2));
      incoming_from_b2_ = true;
    } else {
      move(found->second, kT2);
    }
  }

  std::optional<EntryKey> evict(MayLeave may_leave) override {
    const size_t t1 = part(kT1).size;
    const bool from_t1 = t1 > 0 && (t1 > target_ || (incoming_from_b2_ && t1 == target_));
    const auto key = evict_from(from_t1 ? kT1 : kT2, may_leave);
    return key ? key : evict_from(from_t1 ? kT2 : kT1, may_leave);
  }

  void insert(const Use& use) override {
    const auto found = where_.find(use.key);
    if (found != where_.end()) {
      move(found->second, kT2);
      return;
    }
    while (part(kT1).size + part(kB1).size >= capacity_ && part(kB1).size > 0) forget(kB1);
    while (where_.size() >= 2 * capacity_ && part(kB2).size > 0) forget(kB2);
    const uint32_t node = nodes_.make({use.key, kT1});
    nodes_.push_newest(parts_[kT1], node);
    where_.emplace(use.key, node);
  }

  void remove(EntryKey key) override {
    const auto found = where_.find(key);
    if (found == where_.end() || nodes_[found->second].part > kT2) return;
    erase(found->second);
  }

  size_t bytes() const override { return sizeof(Arc) + nodes_.bytes() + map_bytes(where_); }

 private:
  struct Item {
    EntryKey key = 0;
    Part part = kT1;
  };

  const List& part(Part which) const { return parts_[which]; }

  void move(uint32_t node, Part to) {
    nodes_.unlink(parts_[nodes_[node].part], node);
    nodes_[node].part = to;
    nodes_.push_newest(parts_[to], node);
  }
  void erase(uint32_t node) {
    where_.erase(nodes_[node].key);
    nodes_.unlink(parts_[nodes_[node].part], node);
    nodes_.drop(node);
  }
  void forget(Part which) { erase(parts_[which].oldest); }

  std::optional<EntryKey> evict_from(Part which, MayLeave may_leave) {
    for (uint32_t node = part(which).oldest; node != kNoNode; node = nodes_.newer(node)) {
      const EntryKey key = nodes_[node].key;
      if (!may_leave(key)) continue;
      move(node, which == kT1 ? kB1 : kB2);
      return key;
    }
    return std::nullopt;
  }

  const size_t capacity_;
  size_t target_ = 0;  // p
  bool incoming_from_b2_ = false;
  Lists<Item> nodes_;
  std::array<List, 4> parts_;
  absl::flat_hash_map<EntryKey, uint32_t> where_;
};

}  // namespace

std::unique_ptr<Retention> make_arc(size_t capacity) { return std::make_unique<Arc>(capacity); }

}  // namespace memdecay::retention
