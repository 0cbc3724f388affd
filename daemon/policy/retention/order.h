// Order: the entries of one of the daemon's tiers in the order in which they leave it. Class comes
// first, then priority, then key = tref/H + level (ladder.h says what a level is), then the leaf
// before the root. H may change from one question to the next at no cost: entries of one class,
// priority and rung are one sorted set, and a visit merges the sets of a class from their old ends.
//
// Other than a Ladder it takes entries in whose last use lies back (a page that moves down a tier,
// a session that expired), answers for many at once and changes nothing by answering. The caller
// keeps each entry's Place and gives it back to take the entry out: there is no map by name.
// Thread: the owner's. O(log n) a change; a visit begins with the sets of one class and priority,
// kRungs at most. Memory: about 40 bytes an entry.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "proto/contract/clock.h"

namespace memdecay::retention {

struct Place {
  uint8_t klass = 0;  // the smaller leaves first, whatever its uses
  int32_t priority = 0;
  int16_t rung = 0;               // 0 for all: least recently used first
  int64_t at_ns = 0;              // last use
  uint32_t depth_descending = 0;  // inside one time the leaf leaves before the root
  uint64_t name = 0;
  constexpr auto operator<=>(const Place&) const = default;
};

// tref + rung H, in nanoseconds: smaller leaves first inside one class and priority.
int64_t leaving_key(const Place& place, Duration h);
// Whether a leaves before b.
bool leaves_before(const Place& a, const Place& b, Duration h);

enum class Visit : uint8_t { kGoOn, kEnough };

class Order {
 public:
  void put(const Place& place);
  void erase(const Place& place);
  bool contains(const Place& place) const;
  size_t size() const { return size_; }
  // Shows the places in the order of leaving until the visitor has enough. It must not change the
  // order.
  void visit(Duration h, absl::FunctionRef<Visit(const Place&)> visitor) const;

 private:
  struct Level {
    uint8_t klass = 0;
    int32_t priority = 0;
    int16_t rung = 0;
    constexpr auto operator<=>(const Level&) const = default;
  };
  struct Spot {
    int64_t at_ns = 0;
    uint32_t depth_descending = 0;
    uint64_t name = 0;
    constexpr auto operator<=>(const Spot&) const = default;
  };
  using Spots = absl::btree_set<Spot>;
  using Levels = absl::btree_map<Level, Spots>;

  static Level level_of(const Place& place) { return {place.klass, place.priority, place.rung}; }
  static Spot spot_of(const Place& place) {
    return {place.at_ns, place.depth_descending, place.name};
  }
  static Place place_of(const Level& level, const Spot& spot);
  static Visit merge(Levels::const_iterator begin, Levels::const_iterator end, Duration h,
                     absl::FunctionRef<Visit(const Place&)> visitor);

  Levels levels_;
  size_t size_ = 0;
};

}  // namespace memdecay::retention
