// Searches and sorts (see slow_retention.h).
#include "tests/unit/daemon/policy/retention/slow_retention.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

namespace memdecay::test {
namespace {

using Keys = std::vector<uint64_t>;  // the oldest first

bool has(const Keys& keys, uint64_t key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}
void drop(Keys& keys, uint64_t key) {
  keys.erase(std::remove(keys.begin(), keys.end(), key), keys.end());
}
uint64_t pop_oldest(Keys& keys) {
  const uint64_t key = keys.front();
  keys.erase(keys.begin());
  return key;
}

class SlowLru final : public SlowTier {
 public:
  explicit SlowLru(size_t capacity) : capacity_(capacity) {}
  bool use(const SlowUse& use) override {
    const bool hit = has(keys_, use.key);
    drop(keys_, use.key);
    if (keys_.size() == capacity_) pop_oldest(keys_);
    keys_.push_back(use.key);
    return hit;
  }
  void remove(uint64_t key) override { drop(keys_, key); }
  std::set<uint64_t> held() const override { return {keys_.begin(), keys_.end()}; }

 private:
  size_t capacity_;
  Keys keys_;
};

class SlowMin final : public SlowTier {
 public:
  explicit SlowMin(size_t capacity) : capacity_(capacity) {}
  bool use(const SlowUse& use) override {
    const auto same = [&](const auto& held) { return held.second == use.key; };
    const auto found = std::find_if(held_.begin(), held_.end(), same);
    const bool hit = found != held_.end();
    if (hit) held_.erase(found);
    if (held_.size() == capacity_) held_.erase(std::max_element(held_.begin(), held_.end()));
    held_.emplace_back(use.next, use.key);
    return hit;
  }
  void remove(uint64_t key) override {
    held_.erase(std::remove_if(held_.begin(), held_.end(),
                               [key](const auto& held) { return held.second == key; }),
                held_.end());
  }
  std::set<uint64_t> held() const override {
    std::set<uint64_t> keys;
    for (const auto& [next, key] : held_) keys.insert(key);
    return keys;
  }

 private:
  size_t capacity_;
  std::vector<std::pair<uint64_t, uint64_t>> held_;  // next use, key
};

// Megiddo and Modha, figure 4, in its own order.
class SlowArc final : public SlowTier {
 public:
  explicit SlowArc(size_t capacity) : c_(capacity) {}
  bool use(const SlowUse& use) override {
    const uint64_t x = use.key;
    if (has(t1_, x) || has(t2_, x)) {
      drop(t1_, x);
      drop(t2_, x);
      t2_.push_back(x);
      return true;
    }
    const auto b1 = static_cast<int64_t>(b1_.size()), b2 = static_cast<int64_t>(b2_.size());
    if (has(b1_, x)) {
      p_ = std::min(static_cast<int64_t>(c_), p_ + (b1 >= b2 ? 1 : b2 / b1));
      replace(x);
      drop(b1_, x);
      t2_.push_back(x);
    } else if (has(b2_, x)) {
      p_ = std::max(int64_t{0}, p_ - (b2 >= b1 ? 1 : b1 / b2));
      replace(x);
      drop(b2_, x);
      t2_.push_back(x);
    } else {
      new_key(x);
    }
    return false;
  }
  void remove(uint64_t key) override {
    drop(t1_, key);
    drop(t2_, key);
  }
  std::set<uint64_t> held() const override {
    std::set<uint64_t> keys(t1_.begin(), t1_.end());
    keys.insert(t2_.begin(), t2_.end());
    return keys;
  }

 private:
  void new_key(uint64_t x) {
    const size_t l1 = t1_.size() + b1_.size();
    const size_t all = l1 + t2_.size() + b2_.size();
    if (l1 == c_) {
      if (t1_.size() < c_) {
        pop_oldest(b1_);
        replace(x);
      } else {
        pop_oldest(t1_);
      }
    } else if (all >= c_) {
      if (all == 2 * c_) pop_oldest(b2_);
      replace(x);
    }
    t1_.push_back(x);
  }
  void replace(uint64_t x) {
    if (t1_.size() + t2_.size() < c_) return;  // only after a removal, which the paper has not
    const auto t1 = static_cast<int64_t>(t1_.size());
    if (!t1_.empty() && ((has(b2_, x) && t1 == p_) || t1 > p_)) {
      b1_.push_back(pop_oldest(t1_));
    } else {
      b2_.push_back(pop_oldest(t2_));
    }
  }

  size_t c_;
  int64_t p_ = 0;
  Keys t1_, t2_, b1_, b2_;
};

class SlowS3Fifo final : public SlowTier {
 public:
  explicit SlowS3Fifo(size_t capacity)
      : capacity_(capacity), small_(std::max<size_t>(1, capacity / 10)), ghosts_(capacity) {}
  bool use(const SlowUse& use) override {
    for (auto* queue : {&s_, &m_}) {
      for (auto& [key, uses] : *queue) {
        if (key != use.key) continue;
        uses = std::min(3, uses + 1);
        return true;
      }
    }
    while (s_.size() + m_.size() >= capacity_) evict();
    if (has(g_, use.key)) {
      drop(g_, use.key);
      m_.emplace_back(use.key, 0);
    } else {
      s_.emplace_back(use.key, 0);
    }
    return false;
  }
  void remove(uint64_t key) override {
    for (auto* queue : {&s_, &m_}) {
      queue->erase(std::remove_if(queue->begin(), queue->end(),
                                  [key](const auto& item) { return item.first == key; }),
                   queue->end());
    }
  }
  std::set<uint64_t> held() const override {
    std::set<uint64_t> keys;
    for (const auto* queue : {&s_, &m_}) {
      for (const auto& [key, uses] : *queue) keys.insert(key);
    }
    return keys;
  }

 private:
  using Queue = std::vector<std::pair<uint64_t, int>>;

  void evict() {
    const size_t before = s_.size() + m_.size();
    if (s_.size() >= small_ || m_.empty()) {
      while (!s_.empty() && s_.size() + m_.size() == before) {
        const auto [key, uses] = s_.front();
        s_.erase(s_.begin());
        if (uses > 1) {
          m_.emplace_back(key, 0);
        } else {
          if (g_.size() == ghosts_) pop_oldest(g_);
          g_.push_back(key);
        }
      }
    }
    while (s_.size() + m_.size() == before) {
      const auto [key, uses] = m_.front();
      m_.erase(m_.begin());
      if (uses > 0) m_.emplace_back(key, uses - 1);
    }
  }

  size_t capacity_, small_, ghosts_;
  Queue s_, m_;
  Keys g_;
};

uint64_t splitmix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// key = tref/H + log2 E + log2 b, the last two together in sixteenths of a bit.
struct SlowBlock {
  uint64_t key = 0;
  int64_t at_ms = 0;
  uint64_t chain = 0;
  uint32_t depth = 0;
  int sixteenths = 0;
};

class SlowBlocks {
 public:
  bool holds(uint64_t key) const { return find(key) != nullptr; }
  const SlowBlock* find(uint64_t key) const {
    for (const SlowBlock& block : blocks_) {
      if (block.key == key) return &block;
    }
    return nullptr;
  }
  void put(const SlowBlock& block) {
    erase(block.key);
    blocks_.push_back(block);
  }
  void erase(uint64_t key) {
    blocks_.erase(std::remove_if(blocks_.begin(), blocks_.end(),
                                 [key](const SlowBlock& block) { return block.key == key; }),
                  blocks_.end());
  }
  void drop_lowest(int64_t h_seconds) {
    // Of blocks alike in level the first in (time, chain, leaf before root); of levels the first in
    // (key, leaf before root, chain).
    const SlowBlock* lowest = nullptr;
    for (const SlowBlock& block : blocks_) {
      if (lowest == nullptr || goes_before(block, *lowest, h_seconds)) lowest = &block;
    }
    erase(lowest->key);
  }
  size_t size() const { return blocks_.size(); }
  const std::vector<SlowBlock>& all() const { return blocks_; }

 private:
  static bool goes_before(const SlowBlock& a, const SlowBlock& b, int64_t h) {
    if (a.sixteenths == b.sixteenths) {
      return std::make_tuple(a.at_ms, a.chain, -int64_t{a.depth}) <
             std::make_tuple(b.at_ms, b.chain, -int64_t{b.depth});
    }
    const auto rank = [h](const SlowBlock& block) {
      // 16 times tref/H + level, times H in ms: whole numbers, so that ties are ties.
      const int64_t key = 16 * block.at_ms + block.sixteenths * h * 1000;
      return std::make_tuple(key, -int64_t{block.depth}, block.chain, block.key);
    };
    return rank(a) < rank(b);
  }

  std::vector<SlowBlock> blocks_;
};

class SlowDecay final : public SlowTier {
 public:
  explicit SlowDecay(const SlowTierConfig& config) : config_(config), hits_(7), ghosts_(7) {}

  bool use(const SlowUse& use) override {
    if (use.partial) return held_.holds(use.key);
    const SlowBlock* held = held_.find(use.key);
    const bool hit = held != nullptr;
    double before = 0;
    int64_t since = 0;
    const auto known = std::find_if(history_.begin(), history_.end(),
                                    [&](const Known& k) { return k.key == use.key; });
    if (known != history_.end()) {
      before = known->uses;
      since = known->at_ms;
      history_.erase(known);
    } else if (hit) {
      before = std::exp2(held->sixteenths / 16.0 - use.log2_b);
      since = held->at_ms;
    }
    if (history_.size() == config_.history) history_.erase(history_.begin());
    const double age = static_cast<double>(use.at_ms - since) / 1.8e6;
    const double uses = before == 0 ? 1 : before * std::exp2(-age) + 1;
    history_.push_back({use.key, uses, use.at_ms});
    const double level = std::floor(16 * (std::log2(uses) + use.log2_b) + 0.5);
    const SlowBlock block{use.key, use.at_ms, use.chain, use.depth, static_cast<int>(level)};
    if (hit) held_.put(block);
    if (!use.cannot_pay && splitmix(use.key ^ splitmix(config_.salt)) % 4 == 0) teach(block);
    if (!hit && !use.cannot_pay) {
      if (held_.size() == config_.capacity) held_.drop_lowest(kH[chosen_]);
      held_.put(block);
    }
    return hit;
  }
  void remove(uint64_t key) override { held_.erase(key); }
  std::set<uint64_t> held() const override {
    std::set<uint64_t> keys;
    for (const SlowBlock& block : held_.all()) keys.insert(block.key);
    return keys;
  }

 private:
  static constexpr int64_t kH[] = {15, 30, 60, 120, 240, 480, 960};
  struct Known {
    uint64_t key;
    double uses;
    int64_t at_ms;
  };

  void teach(const SlowBlock& block) {
    if (block.at_ms > taught_ms_) {
      size_t best = chosen_;
      for (size_t i = 0; i < 7; ++i) {
        if (hits_[i] > hits_[best]) best = i;
      }
      if (hits_[best] > hits_[chosen_] * 1.02) chosen_ = best;
      for (double& hits : hits_) {
        hits *= std::exp2(-static_cast<double>(block.at_ms - taught_ms_) / 300e3);
      }
      taught_ms_ = block.at_ms;
    }
    const size_t capacity = std::max<size_t>(1, config_.capacity / 4);
    for (size_t i = 0; i < 7; ++i) {
      if (ghosts_[i].holds(block.key)) {
        hits_[i] += 1;
      } else if (ghosts_[i].size() == capacity) {
        ghosts_[i].drop_lowest(kH[i]);
      }
      ghosts_[i].put(block);
    }
  }

  SlowTierConfig config_;
  std::vector<Known> history_;  // the longest unused first
  SlowBlocks held_;
  std::vector<double> hits_;
  std::vector<SlowBlocks> ghosts_;
  size_t chosen_ = 3;
  int64_t taught_ms_ = 0;
};

}  // namespace

std::unique_ptr<SlowTier> make_slow_tier(const SlowTierConfig& config) {
  if (config.name == "lru") return std::make_unique<SlowLru>(config.capacity);
  if (config.name == "min") return std::make_unique<SlowMin>(config.capacity);
  if (config.name == "arc") return std::make_unique<SlowArc>(config.capacity);
  if (config.name == "s3_fifo") return std::make_unique<SlowS3Fifo>(config.capacity);
  return std::make_unique<SlowDecay>(config);
}

}  // namespace memdecay::test
