// `decay`: the product's policy for what nobody references (ours; the form is that of the
// in-session score, in wall time).
//     E   <- E * 2^(-dt/G) + 1 at a use                 G = 1,800 s
//     key  = tref/H + log2(E) + log2(b)                 the smallest leaves first
// H is the time that one doubling of use buys: towards 0 this is LRU, towards infinity LFU. No
// single H fits every capacity, so it is learned (ghosts.h).
//
// Inside one chain the leaf leaves before the root. A partial tail is never admitted and leaves no
// trace: on a production trace it is used again 1.8 % of the time, the block before it 41 %. What
// cannot pay for its restore is remembered and not admitted.
// The newcomer is no victim of its own coming, also where its key is the lowest.
// Thread: the owner's. Memory: the history, max(8 x capacity, 65,536) keys of about 60 bytes; the
// entries held and 7/S as many in the ghosts, about 75 bytes each. O(1) a use, see ladder.h; a use
// of a sampled key seven times that.
// Not here: the daemon's own tiers, whose order has classes above it (order.h); it is made of the
// same history, levels and ghosts.
#include "daemon/policy/math.h"
#include "daemon/policy/retention/ghosts.h"
#include "daemon/policy/retention/history.h"
#include "daemon/policy/retention/ladder.h"
#include "daemon/policy/retention/makers.h"

namespace memdecay::retention {
namespace {

class Decay final : public Retention {
 public:
  explicit Decay(const RetentionOptions& options)
      : history_(options.history > 0 ? options.history : history_limit(options.capacity),
                 options.memory),
        ghosts_(options) {}

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
    if (use.body == Body::kWhole) ghosts_.use(use, rung);
  }

  std::optional<EntryKey> evict(MayLeave may_leave) override {
    const auto key = held_.lowest(ghosts_.h(), may_leave);
    if (key) held_.erase(*key);
    return key;
  }

  void insert(const Use& use) override {
    const bool just_touched = last_key_ == use.key;
    held_.put(use, just_touched ? last_rung_ : level_rung(history_.count(use.key), use.log2_b));
  }

  void remove(EntryKey key) override { held_.erase(key); }

  size_t bytes() const override {
    return sizeof(Decay) + held_.bytes() + history_.bytes() + ghosts_.bytes();
  }

 private:
  History history_;
  Ladder held_;
  Ghosts ghosts_;
  EntryKey last_key_ = 0;  // of the last touch, which an insertion follows
  int last_rung_ = 0;
};

}  // namespace

std::unique_ptr<Retention> make_decay(const RetentionOptions& options) {
  return std::make_unique<Decay>(options);
}

}  // namespace memdecay::retention
