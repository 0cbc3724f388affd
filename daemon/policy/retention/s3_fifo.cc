// `s3_fifo`: three first-in-first-out queues (Yang, Zhang, Qiu, Yue, Vigfusson, SOSP 2023,
// algorithm 1). A newcomer enters the small queue, a tenth of the capacity; used again it moves to
// the main queue, otherwise it leaves and its key is remembered; who comes back while remembered
// enters the main queue at once. The main queue gives those that were used another round. Uses are
// counted up to 3. As many keys are remembered as entries are held; with the paper's nine tenths of
// them it hits less (.0556 for .0573 at 1,000 blocks). Thread: the owner's. Memory: 2 x capacity
// keys. O(1) a use over the uses, since every further round in the main queue was paid for by a
// use.
#include <algorithm>

#include "daemon/policy/retention/makers.h"
#include "daemon/policy/retention/queues.h"

namespace memdecay::retention {
namespace {

enum Queue : uint8_t { kSmall, kMain, kGhost };
constexpr uint8_t kMostUses = 3;
constexpr uint8_t kUsesToStay = 1;  // in the small queue, beyond the one that brought it in

class S3Fifo final : public Retention {
 public:
  explicit S3Fifo(size_t capacity)
      : small_target_(std::max<size_t>(1, capacity / 10)), ghost_limit_(capacity) {}

  size_t size() const override { return queues_.size(kSmall) + queues_.size(kMain); }
  bool holds(EntryKey key) const override {
    const uint32_t node = queues_.find(key);
    return node != kNoNode && queues_[node].queue != kGhost;
  }

  void touch(const Use& use) override {
    const uint32_t node = queues_.find(use.key);
    if (node == kNoNode) return;
    Item& item = queues_[node];
    if (item.queue != kGhost) item.uses = std::min<uint8_t>(kMostUses, item.uses + 1);
  }

  std::optional<EntryKey> evict(MayLeave may_leave) override {
    const bool from_small = queues_.size(kSmall) >= small_target_ || queues_.size(kMain) == 0;
    if (from_small) {
      if (const auto key = evict_small(may_leave)) return key;
    }
    if (const auto key = evict_main(may_leave)) return key;
    return from_small ? std::nullopt : evict_small(may_leave);
  }

  void insert(const Use& use) override {
    const uint32_t node = queues_.find(use.key);
    if (node == kNoNode) return queues_.add({use.key, kSmall, 0});
    queues_[node].uses = 0;
    queues_.move(node, kMain);
  }

  void remove(EntryKey key) override {
    const uint32_t node = queues_.find(key);
    if (node != kNoNode && queues_[node].queue != kGhost) queues_.erase(node);
  }

  size_t bytes() const override { return sizeof(S3Fifo) + queues_.bytes(); }

 private:
  struct Item {
    EntryKey key = 0;
    Queue queue = kSmall;
    uint8_t uses = 0;
  };

  // Each loop sees a node at most once: what may not leave goes to the queue's end as it is.
  std::optional<EntryKey> evict_small(MayLeave may_leave) {
    for (size_t left = queues_.size(kSmall); left > 0; --left) {
      const uint32_t node = queues_.oldest(kSmall);
      Item& item = queues_[node];
      if (item.uses > kUsesToStay) {
        item.uses = 0;
        queues_.move(node, kMain);
      } else if (!may_leave(item.key)) {
        queues_.move(node, kSmall);
      } else {
        while (queues_.size(kGhost) >= ghost_limit_) queues_.erase(queues_.oldest(kGhost));
        const EntryKey key = item.key;
        queues_.move(node, kGhost);
        return key;
      }
    }
    return std::nullopt;
  }
  std::optional<EntryKey> evict_main(MayLeave may_leave) {
    // Every pass takes a use from each, so the last finds nobody with one.
    for (size_t left = queues_.size(kMain) * (kMostUses + 1); left > 0; --left) {
      const uint32_t node = queues_.oldest(kMain);
      Item& item = queues_[node];
      if (item.uses > 0) {
        --item.uses;
        queues_.move(node, kMain);
      } else if (!may_leave(item.key)) {
        queues_.move(node, kMain);
      } else {
        const EntryKey key = item.key;
        queues_.erase(node);
        return key;
      }
    }
    return std::nullopt;
  }

  const size_t small_target_;
  const size_t ghost_limit_;
  Queues<Item, 3> queues_;
};

}  // namespace

std::unique_ptr<Retention> make_s3_fifo(size_t capacity) {
  return std::make_unique<S3Fifo>(capacity);
}

}  // namespace memdecay::retention
