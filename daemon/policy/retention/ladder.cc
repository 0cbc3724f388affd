// Lists a rung, and the comparison of their old ends (see ladder.h).
#include "daemon/policy/retention/ladder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "daemon/policy/math.h"

namespace memdecay::retention {

int rung_of(double level) {
  const double rung = std::floor(level * kRungsABit + 0.5);
  return static_cast<int>(std::clamp<double>(rung, kLowestRung, kHighestRung));
}

int level_rung(double uses, double log2_b) {
  return rung_of((uses <= 1 ? 0.0 : policy::fixed_log2(uses)) + log2_b);
}

std::optional<Ladder::Place> Ladder::find(EntryKey key) const {
  const auto found = where_.find(key);
  if (found == where_.end()) return std::nullopt;
  const Item& item = nodes_[found->second];
  return Place{item.rung, item.at_ms};
}

void Ladder::put(const Use& use, int number) {
  const Item item{use.key, use.at.nanoseconds / 1'000'000, use.chain, use.depth,
                  static_cast<int16_t>(number)};
  const auto [found, fresh] = where_.try_emplace(use.key, kNoNode);
  if (fresh) {
    found->second = nodes_.make(item);
  } else {
    unlink(found->second);
    nodes_[found->second] = item;
  }
  const uint32_t node = found->second;
  Rung& to = rung(number);
  if (to.chain_oldest != kNoNode && nodes_[to.chain_oldest].chain == use.chain) {
    nodes_.push_older_than(to.list, node, to.chain_oldest);
  } else {
    nodes_.push_newest(to.list, node);
  }
  to.chain_oldest = node;
  note_oldest(to);
  const auto bit = static_cast<size_t>(number - kLowestRung);
  used_[bit / 64] |= uint64_t{1} << (bit % 64);
}

void Ladder::unlink(uint32_t node) {
  const Item& item = nodes_[node];
  Rung& from = rung(item.rung);
  if (from.chain_oldest == node) {
    const uint32_t newer = nodes_.newer(node);
    const bool same = newer != kNoNode && nodes_[newer].chain == item.chain;
    from.chain_oldest = same ? newer : kNoNode;
  }
  nodes_.unlink(from.list, node);
  note_oldest(from);
  const auto bit = static_cast<size_t>(item.rung - kLowestRung);
  if (from.list.size == 0) used_[bit / 64] &= ~(uint64_t{1} << (bit % 64));
}

bool Ladder::leaf_first(uint32_t a, uint32_t b) const {
  const auto rank = [](const Item& item) {
    return std::make_tuple(~item.depth, item.chain, item.key);
  };
  return rank(nodes_[a]) < rank(nodes_[b]);
}

std::optional<EntryKey> Ladder::lowest(Duration h, MayLeave may_leave) const {
  uint32_t best = kNoNode;
  int64_t best_key = 0;
  for (size_t word = 0; word < used_.size(); ++word) {
    for (uint64_t bits = used_[word]; bits != 0; bits &= bits - 1) {
      const size_t at = word * 64 + static_cast<size_t>(std::countr_zero(bits));
      const Rung& from = rungs_[at];
      const int64_t level = (static_cast<int64_t>(at) + kLowestRung) * h.milliseconds();
      int64_t key = from.oldest_ms * kRungsABit + level;
      for (uint32_t node = from.list.oldest; node != kNoNode; node = nodes_.newer(node)) {
        if (node != from.list.oldest) key = nodes_[node].at_ms * kRungsABit + level;
        if (best != kNoNode && key > best_key) break;
        if (best != kNoNode && key == best_key && !leaf_first(node, best)) break;
        if (!may_leave(nodes_[node].key)) continue;
        best = node;
        best_key = key;
        break;
      }
    }
  }
  if (best == kNoNode) return std::nullopt;
  return nodes_[best].key;
}

void Ladder::erase(EntryKey key) {
  const auto found = where_.find(key);
  if (found == where_.end()) return;
  unlink(found->second);
  nodes_.drop(found->second);
  where_.erase(found);
}

}  // namespace memdecay::retention
