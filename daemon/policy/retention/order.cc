// Sorted sets a level, merged by key (see order.h).
#include "daemon/policy/retention/order.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include "daemon/policy/retention/ladder.h"
#include "proto/contract/check.h"

namespace memdecay::retention {

int64_t leaving_key(const Place& place, Duration h) {
  return place.at_ns + place.rung * (h.nanoseconds / kRungsABit);
}

bool leaves_before(const Place& a, const Place& b, Duration h) {
  const auto rank = [h](const Place& place) {
    return std::make_tuple(place.klass, place.priority, leaving_key(place, h),
                           place.depth_descending, place.name);
  };
  return rank(a) < rank(b);
}

Place Order::place_of(const Level& level, const Spot& spot) {
  return {level.klass, level.priority, level.rung, spot.at_ns, spot.depth_descending, spot.name};
}

void Order::put(const Place& place) {
  const bool fresh = levels_[level_of(place)].insert(spot_of(place)).second;
  MEMDECAY_CHECK(fresh);
  ++size_;
}

void Order::erase(const Place& place) {
  const auto level = levels_.find(level_of(place));
  MEMDECAY_CHECK(level != levels_.end() && level->second.erase(spot_of(place)) == 1);
  if (level->second.empty()) levels_.erase(level);
  --size_;
}

bool Order::contains(const Place& place) const {
  const auto level = levels_.find(level_of(place));
  return level != levels_.end() && level->second.contains(spot_of(place));
}

Visit Order::merge(Levels::const_iterator begin, Levels::const_iterator end, Duration h,
                   absl::FunctionRef<Visit(const Place&)> visitor) {
  struct Front {
    Place place;
    const Level* level;
    Spots::const_iterator at;
    Spots::const_iterator end;
  };
  std::vector<Front> fronts;  // a heap, the first to leave on top
  const auto later = [h](const Front& a, const Front& b) {
    return leaves_before(b.place, a.place, h);
  };
  for (auto level = begin; level != end; ++level) {
    const auto at = level->second.begin();
    fronts.push_back({place_of(level->first, *at), &level->first, at, level->second.end()});
  }
  std::make_heap(fronts.begin(), fronts.end(), later);
  while (!fronts.empty()) {
    std::pop_heap(fronts.begin(), fronts.end(), later);
    Front& front = fronts.back();
    if (visitor(front.place) == Visit::kEnough) return Visit::kEnough;
    if (++front.at == front.end) {
      fronts.pop_back();
      continue;
    }
    front.place = place_of(*front.level, *front.at);
    std::push_heap(fronts.begin(), fronts.end(), later);
  }
  return Visit::kGoOn;
}

void Order::visit(Duration h, absl::FunctionRef<Visit(const Place&)> visitor) const {
  for (auto begin = levels_.begin(); begin != levels_.end();) {
    auto end = std::next(begin);
    while (end != levels_.end() && end->first.klass == begin->first.klass &&
           end->first.priority == begin->first.priority) {
      ++end;
    }
    if (merge(begin, end, h, visitor) == Visit::kEnough) return;
    begin = end;
  }
}

}  // namespace memdecay::retention
