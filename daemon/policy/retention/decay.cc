// `decay`: the product's policy for what nobody references (ours; the form is that of the
// in-session score, in wall time).
//     E   <- E * 2^(-dt/G) + 1 at a use                 G = 1,800 s
//     key  = tref/H + log2(E) + log2(b)                 the smallest leaves first
// H is the time that one doubling of use buys: towards 0 this is LRU, towards infinity LFU. No
// single H fits every capacity, so seven ghost caches, keys only, of a salted sample of the keys
// (one in S = 4, capacity / S) run one H each; the one with the most hits lately (half-life 300 s)
// decides, and another must be 2 % better to take over.
//
// Inside one chain the leaf leaves before the root. A partial tail is never admitted and leaves no
// trace: on a production trace it is used again 1.8 % of the time, the block before it 41 %. What
// cannot pay for its restore is remembered and not admitted.
// The newcomer is no victim of its own coming, also where its key is the lowest.
// Thread: the owner's. Memory: the history, max(8 x capacity, 65,536) keys of about 60 bytes; the
// entries held and 7/S as many in the ghosts, about 75 bytes each. O(1) a use, see ladder.h; a use
// of a sampled key seven times that.
#include <array>
#include <cmath>

#include "daemon/base/random.h"
#include "daemon/policy/math.h"
#include "daemon/policy/retention/history.h"
#include "daemon/policy/retention/ladder.h"
#include "daemon/policy/retention/makers.h"

namespace memdecay::retention {
namespace {

constexpr std::array<int64_t, 7> kHSeconds = {15, 30, 60, 120, 240, 480, 960};
constexpr size_t kFirstH = 3;  // until the ghosts have seen something
constexpr size_t kHistoryACapacity = 8;

uint64_t mixed(uint64_t x) { return base::Random(x).next(); }

bool anything(EntryKey) { return true; }

struct Ghost {
  Ladder held;
  double hits = 0;
};

class Decay final : public Retention {
 public:
  explicit Decay(const RetentionOptions& options)
      : options_(options),
        salt_(mixed(options.salt)),
        ghost_capacity_(std::max<size_t>(1, options.capacity / options.sample)),
        history_(options.history > 0
                     ? options.history
                     : std::max(kHistoryACapacity * options.capacity, kLeastHistory),
                 options.memory) {}

  size_t size() const override { return held_.size(); }
  bool holds(EntryKey key) const override { return held_.holds(key); }
  bool admits(const Use& use) const override { return use.body == Body::kWhole; }

  void touch(const Use& use) override {
    if (use.body == Body::kPartialTail) return;
    const auto place = held_.find(use.key);
    const double uses = history_.touch(use.key, use.at, [&]() -> Uses {
      if (!place) return {};
      // Held for longer than it is remembered: its rung says how often it was used.
      const double level = static_cast<double>(place->rung) / kRungsABit - use.log2_b;
      return {policy::fixed_exp2(level), place->at_ms};
    });
    const int rung = level_rung(uses, use.log2_b);
    last_key_ = use.key;
    last_rung_ = rung;
    if (place) held_.put(use, rung);
    if (use.body == Body::kWhole && mixed(use.key ^ salt_) % options_.sample == 0) {
      teach(use, rung);
    }
  }

  std::optional<EntryKey> evict(MayLeave may_leave) override {
    const auto key = held_.lowest(Duration::from_seconds(kHSeconds[chosen_]), may_leave);
    if (key) held_.erase(*key);
    return key;
  }

  void insert(const Use& use) override {
    const bool just_touched = last_key_ == use.key;
    held_.put(use, just_touched ? last_rung_ : level_rung(history_.count(use.key), use.log2_b));
  }

  void remove(EntryKey key) override { held_.erase(key); }

  size_t bytes() const override {
    size_t bytes = sizeof(Decay) + held_.bytes() + history_.bytes();
    for (const Ghost& ghost : ghosts_) bytes += ghost.held.bytes();
    return bytes;
  }

 private:
  // Uses of 0 are those of a key that was forgotten: it counts as used once, now.
  static int level_rung(double uses, double log2_b) {
    return rung_of((uses <= 1 ? 0.0 : policy::fixed_log2(uses)) + log2_b);
  }

  // The ghosts live through the use as the tier would with their H.
  void teach(const Use& use, int rung) {
    if (use.at > faded_) {  // what lies at one time is judged together
      choose();
      fade(use.at);
    }
    for (size_t i = 0; i < ghosts_.size(); ++i) {
      Ghost& ghost = ghosts_[i];
      if (ghost.held.holds(use.key)) {
        ghost.hits += 1;
      } else if (ghost.held.size() >= ghost_capacity_) {
        ghost.held.erase(*ghost.held.lowest(Duration::from_seconds(kHSeconds[i]), anything));
      }
      ghost.held.put(use, rung);
    }
  }

  void choose() {
    size_t best = chosen_;
    for (size_t i = 0; i < ghosts_.size(); ++i) {
      if (ghosts_[i].hits > ghosts_[best].hits) best = i;
    }
    if (ghosts_[best].hits > ghosts_[chosen_].hits * (1 + options_.hysteresis)) chosen_ = best;
  }

  void fade(Instant now) {
    const int64_t since = now.nanoseconds - faded_.nanoseconds;
    faded_ = now;
    const double factor = policy::fixed_exp2(
        -static_cast<double>(since) / static_cast<double>(options_.ghost_memory.nanoseconds));
    for (Ghost& ghost : ghosts_) ghost.hits = policy::without_dust(ghost.hits * factor);
  }

  const RetentionOptions options_;
  const uint64_t salt_;
  const size_t ghost_capacity_;
  History history_;
  Ladder held_;
  std::array<Ghost, kHSeconds.size()> ghosts_;
  size_t chosen_ = kFirstH;
  Instant faded_;
  EntryKey last_key_ = 0;  // of the last touch, which an insertion follows
  int last_rung_ = 0;
};

}  // namespace

std::unique_ptr<Retention> make_decay(const RetentionOptions& options) {
  return std::make_unique<Decay>(options);
}

}  // namespace memdecay::retention
