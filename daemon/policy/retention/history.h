// History: how often keys were used, held or not, forgetting with half-life G:
//     E <- E * 2^(-dt/G) + 1 at a use
// Bounded: beyond the limit the keys that were used longest ago are forgotten.
// Thread: the owner's. O(1) a use. Memory: the limit times about 60 bytes (32 a node, the map).
#pragma once

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "daemon/policy/retention/lists.h"
#include "daemon/policy/retention/retention.h"

namespace memdecay::retention {

// Uses in units of one, as they were at a time.
struct Uses {
  double count = 0;
  int64_t at_ms = 0;
};

// Keys that are remembered for a tier of that many entries.
size_t history_limit(size_t capacity);

class History {
 public:
  History(size_t limit, Duration half_life) : limit_(limit), half_life_(half_life) {}

  // One more use. `otherwise` says what to go on from when the key is not remembered. Returns E.
  double touch(EntryKey key, Instant at, absl::FunctionRef<Uses()> otherwise);
  // E as of the last use; 0: not remembered.
  double count(EntryKey key) const;
  size_t size() const { return where_.size(); }
  // Another limit from now on. A smaller one is reached use by use.
  void resize(size_t limit) { limit_ = limit; }
  size_t bytes() const { return sizeof(History) + nodes_.bytes() + map_bytes(where_); }

 private:
  struct Item {
    EntryKey key = 0;
    Uses uses;
  };
  double after(const Uses& uses, int64_t at_ms) const;
  void forget_oldest();

  size_t limit_;
  const Duration half_life_;
  Lists<Item> nodes_;
  List order_;
  absl::flat_hash_map<EntryKey, uint32_t> where_;
};

}  // namespace memdecay::retention
