// Keys that each stand in one of a few queues and are found by key: what `arc` and `s3_fifo` are
// made of. An Item has a `key` and the `queue` it stands in, a number below kQueues.
// Thread: the owner's. O(1) each. Not here: which queue a key belongs in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "daemon/policy/retention/lists.h"
#include "daemon/policy/retention/retention.h"

namespace memdecay::retention {

template <typename Item, size_t kQueues>
class Queues {
 public:
  size_t size() const { return where_.size(); }
  size_t size(size_t queue) const { return queues_[queue].size; }
  // kNoNode: it stands in none.
  uint32_t find(EntryKey key) const {
    const auto found = where_.find(key);
    return found == where_.end() ? kNoNode : found->second;
  }
  Item& operator[](uint32_t node) { return nodes_[node]; }
  const Item& operator[](uint32_t node) const { return nodes_[node]; }
  uint32_t oldest(size_t queue) const { return queues_[queue].oldest; }
  uint32_t newer(uint32_t node) const { return nodes_.newer(node); }

  // At the newest end of its queue. The key stands in none.
  void add(const Item& item) {
    const uint32_t node = nodes_.make(item);
    nodes_.push_newest(queues_[item.queue], node);
    where_.emplace(item.key, node);
  }
  // To the newest end, also of the queue that it stands in.
  void move(uint32_t node, decltype(Item::queue) to) {
    nodes_.unlink(queues_[nodes_[node].queue], node);
    nodes_[node].queue = to;
    nodes_.push_newest(queues_[to], node);
  }
  void erase(uint32_t node) {
    where_.erase(nodes_[node].key);
    nodes_.unlink(queues_[nodes_[node].queue], node);
    nodes_.drop(node);
  }
  // Without the object itself.
  size_t bytes() const { return nodes_.bytes() + map_bytes(where_); }

 private:
  Lists<Item> nodes_;
  std::array<List, kQueues> queues_;
  absl::flat_hash_map<EntryKey, uint32_t> where_;
};

}  // namespace memdecay::retention
