// `arc`: adaptive replacement (Megiddo and Modha, USENIX FAST 2003, figure 4). T1 holds what was
// used once lately, T2 what was used more often; B1 and B2 remember the keys that left them, and a
// use of a remembered key moves the target size p of T1 towards the list that would have kept it.
// Steps are whole numbers, max(1, |B2|/|B1| rounded down) and the reverse
// (with fractions it hits less here, .1124 for .1157 at 5,000 blocks).
// The paper trims its ghosts before it replaces; here they are trimmed when the newcomer comes in,
// which leaves the same lists.
// Thread: the owner's. Memory: 2 x capacity keys. O(1) a use.
#include <algorithm>

#include "daemon/policy/retention/makers.h"
#include "daemon/policy/retention/queues.h"

namespace memdecay::retention {
namespace {

enum Part : uint8_t { kT1, kT2, kB1, kB2 };

class Arc final : public Retention {
 public:
  explicit Arc(size_t capacity) : capacity_(capacity) {}

  size_t size() const override { return queues_.size(kT1) + queues_.size(kT2); }
  bool holds(EntryKey key) const override {
    const uint32_t node = queues_.find(key);
    return node != kNoNode && queues_[node].queue <= kT2;
  }

  void touch(const Use& use) override {
    incoming_from_b2_ = false;
    const uint32_t node = queues_.find(use.key);
    if (node == kNoNode) return;
    const Part from = queues_[node].queue;
    const size_t b1 = queues_.size(kB1);
    const size_t b2 = queues_.size(kB2);
    if (from == kB1) {
      target_ = std::min(capacity_, target_ + std::max<size_t>(1, b2 / b1));
    } else if (from == kB2) {
      target_ -= std::min(target_, std::max<size_t>(1, b1 / b2));
      incoming_from_b2_ = true;
    } else {
      queues_.move(node, kT2);
    }
  }

  std::optional<EntryKey> evict(MayLeave may_leave) override {
    const size_t t1 = queues_.size(kT1);
    const bool from_t1 = t1 > 0 && (t1 > target_ || (incoming_from_b2_ && t1 == target_));
    const auto key = evict_from(from_t1 ? kT1 : kT2, may_leave);
    return key ? key : evict_from(from_t1 ? kT2 : kT1, may_leave);
  }

  void insert(const Use& use) override {
    const uint32_t node = queues_.find(use.key);
    if (node != kNoNode) return queues_.move(node, kT2);
    while (queues_.size(kT1) + queues_.size(kB1) >= capacity_ && queues_.size(kB1) > 0) forget(kB1);
    while (queues_.size() >= 2 * capacity_ && queues_.size(kB2) > 0) forget(kB2);
    queues_.add({use.key, kT1});
  }

  void remove(EntryKey key) override {
    const uint32_t node = queues_.find(key);
    if (node != kNoNode && queues_[node].queue <= kT2) queues_.erase(node);
  }

  size_t bytes() const override { return sizeof(Arc) + queues_.bytes(); }

 private:
  struct Item {
    EntryKey key = 0;
    Part queue = kT1;
  };

  void forget(Part which) { queues_.erase(queues_.oldest(which)); }

  std::optional<EntryKey> evict_from(Part which, MayLeave may_leave) {
    for (uint32_t node = queues_.oldest(which); node != kNoNode; node = queues_.newer(node)) {
      const EntryKey key = queues_[node].key;
      if (!may_leave(key)) continue;
      queues_.move(node, which == kT1 ? kB1 : kB2);
      return key;
    }
    return std::nullopt;
  }

  const size_t capacity_;
  size_t target_ = 0;  // p
  bool incoming_from_b2_ = false;
  Queues<Item, 4> queues_;
};

}  // namespace

std::unique_ptr<Retention> make_arc(size_t capacity) { return std::make_unique<Arc>(capacity); }

}  // namespace memdecay::retention
