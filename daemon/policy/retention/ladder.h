// Ladder: entries ordered by key = tref/H + level for every H at once, where the level is a number
// of bits that stands still between two uses (log2 of the uses, log2 of the region's worth).
//
// Levels are rounded to sixteenths of a bit, the rungs. On one rung the order is that of the last
// uses, whatever H is, so a rung is a list and the lowest entry of all stands at the old end of
// one. H may change from one question to the next at no cost, and no key is ever computed anew:
// what a heap cannot do. Keys are compared as integers, (16 tref + rung H) in milliseconds.
// Inside one chain the leaf stands before the root, however the rungs tie.
// Thread: the owner's. O(1) a use; `lowest` looks at the rungs that hold something, kRungs at most
// (some fifty in practice). Memory: the entries held.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "daemon/policy/retention/lists.h"
#include "daemon/policy/retention/retention.h"

namespace memdecay::retention {

inline constexpr int kRungsABit = 16;
inline constexpr int kLowestRung = -8 * kRungsABit;   // worths below 2^-8 are 2^-8
inline constexpr int kHighestRung = 24 * kRungsABit;  // more than 2^24 uses within G are 2^24
inline constexpr int kRungs = kHighestRung - kLowestRung + 1;

// The rung of a level in bits: to the nearest, within the bounds.
int rung_of(double level);
// Of so many uses and a worth. Uses of 0 are those of a key that was forgotten: it counts as used
// once, now.
int level_rung(double uses, double log2_b);

class Ladder {
 public:
  size_t size() const { return where_.size(); }
  bool holds(EntryKey key) const { return where_.contains(key); }
  // On which rung, and since when; nothing: it is not held.
  struct Place {
    int rung = 0;
    int64_t at_ms = 0;
  };
  std::optional<Place> find(EntryKey key) const;

  // Takes it in, or up to the newest end of its rung (before what is held of its chain).
  void put(const Use& use, int rung);
  std::optional<EntryKey> lowest(Duration h, MayLeave may_leave) const;
  void erase(EntryKey key);
  size_t bytes() const { return sizeof(Ladder) + nodes_.bytes() + map_bytes(where_); }

 private:
  struct Item {
    EntryKey key = 0;
    int64_t at_ms = 0;
    uint64_t chain = 0;
    uint32_t depth = 0;
    int16_t rung = 0;
  };
  struct Rung {
    List list;
    uint32_t chain_oldest = kNoNode;  // of the chain that was put here last
    int64_t oldest_ms = 0;            // of the list's oldest, beside the others': one cache line
  };

  Rung& rung(int number) { return rungs_[static_cast<size_t>(number - kLowestRung)]; }
  void note_oldest(Rung& of) {
    if (of.list.oldest != kNoNode) of.oldest_ms = nodes_[of.list.oldest].at_ms;
  }
  void unlink(uint32_t node);
  bool leaf_first(uint32_t a, uint32_t b) const;

  Lists<Item> nodes_;
  std::array<Rung, kRungs> rungs_;
  std::array<uint64_t, (kRungs + 63) / 64> used_{};  // a bit a rung that holds something
  absl::flat_hash_map<EntryKey, uint32_t> where_;
};

}  // namespace memdecay::retention
