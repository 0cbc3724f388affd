// `s3_fifo`: three first-in-first-out queues (Yang, Zhang, Qiu, Yue, Vigfusson, SOSP 2023,
// algorithm 1). A newcomer enters the small queue, a tenth of the capacity; used again it moves to
// the main queue, otherwise it leaves and its key is remembered; who comes back while remembered
// enters the main queue at once. The main queue gives those that were used another round. Uses are
// counted up to 3. As many keys are remembered as entries are held; with the paper's nine tenths of
// them it hits less (.0556 for .0573 at 1,000 blocks). Thread: the owner's. Memory: 2 x capacity
// keys. O(1) a use over the uses, since every further round in the main queue was paid for by a
// use.
#include <algorithm>
#include <array>

#include "absl/container/flat_hash_map.h"
#include "daemon/policy/retention/lists.h"
#include "daemon/policy/retention/makers.h"

namespace memdecay::retention {
namespace {

enum Queue : uint8_t { kSmall, kMain, kGhost };
constexpr uint8_t kMostUses = 3;
constexpr uint8_t kUsesToStay = 1;  // in the small queue, beyond the one that brought it in

class S3Fifo final : public Retention {
 public:
  explicit S3Fifo(size_t capacity)
      : small_target_(std::max<size_t>(1, capacity / 10)), ghost_limit_(capacity) {}

  size_t size() const override { return queues_[kSmall].size + queues_[kMain].size; }
  bool holds(EntryKey key) const override {
    const auto found = where_.find(key);
    return found != where_.end() && nodes_[found->second].queue != kGhost;
  }

  void touch(const Use& use) override {
    const auto found = where_.find(use.key);
    if (found == where_.end()) return;
    Item& item = nodes_[found->second];
    if (item.queue != kGhost) item.uses = std::min<uint8_t>(kMostUses, item.uses + 1);
  }

  std::optional<EntryKey> evict(MayLeave may_leave) override {
    const bool from_small = queues_[kSmall].size >= small_target_ || queues_[kMain].size == 0;
    if (from_small) {
      if (const auto key = evict_small(may_leave)) return key;
    }
    if (const auto key = evict_main(may_leave)) return key;
    return from_small ? std::nullopt : evict_small(may_leave);
  }

  void insert(const Use& use) override {
    const auto found = where_.find(use.key);
    if (found != where_.end()) {
      nodes_[found->second].uses = 0;
      move(found->second, kMain);
      return;
    }
    const uint32_t node = nodes_.make({use.key, kSmall, 0});
    nodes_.push_newest(queues_[kSmall], node);
    where_.emplace(use.key, node);
  }

  void remove(EntryKey key) override {
    const auto found = where_.find(key);
    if (found != where_.end() && nodes_[found->second].queue != kGhost) erase(found->second);
  }

  size_t bytes() const override { return sizeof(S3Fifo) + nodes_.bytes() + map_bytes(where_); }

 private:
  struct Item {
    EntryKey key = 0;
    Queue queue = kSmall;
    uint8_t uses = 0;
  };

  void move(uint32_t node, Queue to) {
    nodes_.unlink(queues_[nodes_[node].queue], node);
    nodes_[node].queue = to;
    nodes_.push_newest(queues_[to], node);
  }
  void erase(uint32_t node) {
    where_.erase(nodes_[node].key);
    nodes_.unlink(queues_[nodes_[node].queue], node);
    nodes_.drop(node);
  }

  // Each loop sees a node at most once: what may not leave goes to the queue's end as it is.
  std::optional<EntryKey> evict_small(MayLeave may_leave) {
    for (size_t left = queues_[kSmall].size; left > 0; --left) {
      const uint32_t node = queues_[kSmall].oldest;
      Item& item = nodes_[node];
      if (item.uses > kUsesToStay) {
        item.uses = 0;
        move(node, kMain);
      } else if (!may_leave(item.key)) {
        move(node, kSmall);
      } else {
        while (queues_[kGhost].size >= ghost_limit_) erase(queues_[kGhost].oldest);
        const EntryKey key = item.key;
        move(node, kGhost);
        return key;
      }
    }
    return std::nullopt;
  }
  std::optional<EntryKey> evict_main(MayLeave may_leave) {
    // Every pass takes a use from each, so the last finds nobody with one.
    for (size_t left = queues_[kMain].size * (kMostUses + 1); left > 0; --left) {
      const uint32_t node = queues_[kMain].oldest;
      Item& item = nodes_[node];
      if (item.uses > 0) {
        --item.uses;
        move(node, kMain);
      } else if (!may_leave(item.key)) {
        move(node, kMain);
      } else {
        const EntryKey key = item.key;
        erase(node);
        return key;
      }
    }
    return std::nullopt;
  }

  const size_t small_target_;
  const size_t ghost_limit_;
  Lists<Item> nodes_;
  std::array<List, 3> queues_;
  absl::flat_hash_map<EntryKey, uint32_t> where_;
};

}  // namespace

std::unique_ptr<Retention> make_s3_fifo(size_t capacity) {
  return std::make_unique<S3Fifo>(capacity);
}

}  // namespace memdecay::retention
