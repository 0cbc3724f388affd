// Doubly linked lists over one pool of nodes: an index is a pointer of four bytes, a node that
// changes its list is not allocated anew, and a list of a million entries is a few large blocks.
// Thread: the owner's. Not here: look-up by key (each policy has its own map to these indices).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memdecay::retention {

inline constexpr uint32_t kNoNode = 0xffffffff;

struct List {
  uint32_t oldest = kNoNode;
  uint32_t newest = kNoNode;
  size_t size = 0;
};

template <typename T>
class Lists {
 public:
  T& operator[](uint32_t node) { return nodes_[node].value; }
  const T& operator[](uint32_t node) const { return nodes_[node].value; }
  uint32_t newer(uint32_t node) const { return nodes_[node].newer; }
  uint32_t older(uint32_t node) const { return nodes_[node].older; }

  uint32_t make(const T& value) {
    if (free_ == kNoNode) {
      nodes_.push_back({value, kNoNode, kNoNode});
      return static_cast<uint32_t>(nodes_.size() - 1);
    }
    const uint32_t node = free_;
    free_ = nodes_[node].newer;
    nodes_[node] = {value, kNoNode, kNoNode};
    return node;
  }
  // It is in no list.
  void drop(uint32_t node) {
    nodes_[node].newer = free_;
    free_ = node;
  }

  void push_newest(List& list, uint32_t node) { link(list, list.newest, node, kNoNode); }
  void push_older_than(List& list, uint32_t node, uint32_t mark) {
    link(list, nodes_[mark].older, node, mark);
  }
  void unlink(List& list, uint32_t node) {
    const Node& gone = nodes_[node];
    (gone.older == kNoNode ? list.oldest : nodes_[gone.older].newer) = gone.newer;
    (gone.newer == kNoNode ? list.newest : nodes_[gone.newer].older) = gone.older;
    --list.size;
  }

  size_t bytes() const { return nodes_.capacity() * sizeof(Node); }

 private:
  struct Node {
    T value;
    uint32_t older;
    uint32_t newer;  // of a dropped node: the next dropped one
  };

  void link(List& list, uint32_t older, uint32_t node, uint32_t newer) {
    nodes_[node].older = older;
    nodes_[node].newer = newer;
    (older == kNoNode ? list.oldest : nodes_[older].newer) = node;
    (newer == kNoNode ? list.newest : nodes_[newer].older) = node;
    ++list.size;
  }

  std::vector<Node> nodes_;
  uint32_t free_ = kNoNode;
};

// What a map from keys to nodes takes, about.
template <typename Map>
size_t map_bytes(const Map& map) {
  return map.capacity() * (sizeof(typename Map::value_type) + 1);
}

}  // namespace memdecay::retention
