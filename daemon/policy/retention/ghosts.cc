// The ghosts' lives (see ghosts.h).
#include "daemon/policy/retention/ghosts.h"

#include <algorithm>

#include "daemon/base/random.h"
#include "daemon/policy/math.h"

namespace memdecay::retention {
namespace {

constexpr size_t kFirstH = 3;  // until the ghosts have seen something
constexpr int kLeaveAUse = 2;  // keys that may leave a ghost at a use, where its tier has shrunk

uint64_t mixed(uint64_t x) { return base::Random(x).next(); }

bool anything(EntryKey) { return true; }

}  // namespace

Ghosts::Ghosts(const RetentionOptions& options)
    : salt_(mixed(options.salt)),
      memory_(options.ghost_memory),
      hysteresis_(options.hysteresis),
      sample_(options.sample),
      capacity_(share(options.capacity)),
      chosen_(kFirstH) {}

size_t Ghosts::share(size_t capacity) const { return std::max<size_t>(1, capacity / sample_); }

void Ghosts::use(const Use& use, int rung) {
  if (mixed(use.key ^ salt_) % sample_ != 0) return;
  if (use.at > faded_) {  // what lies at one time is judged together
    choose();
    fade(use.at);
  }
  for (size_t i = 0; i < ghosts_.size(); ++i) {
    Ghost& ghost = ghosts_[i];
    const bool held = ghost.held.holds(use.key);
    if (held) ghost.hits += 1;
    const size_t most = held ? capacity_ : capacity_ - 1;  // before it comes in
    for (int gone = 0; gone < kLeaveAUse && ghost.held.size() > most; ++gone) {
      ghost.held.erase(*ghost.held.lowest(Duration::from_seconds(kHSeconds[i]), anything));
    }
    ghost.held.put(use, rung);
  }
}

void Ghosts::resize(size_t capacity) { capacity_ = share(capacity); }

size_t Ghosts::keys() const {
  size_t keys = 0;
  for (const Ghost& ghost : ghosts_) keys += ghost.held.size();
  return keys;
}

size_t Ghosts::bytes() const {
  size_t bytes = sizeof(Ghosts);
  for (const Ghost& ghost : ghosts_) bytes += ghost.held.bytes() - sizeof(Ladder);
  return bytes;
}

void Ghosts::choose() {
  size_t best = chosen_;
  for (size_t i = 0; i < ghosts_.size(); ++i) {
    if (ghosts_[i].hits > ghosts_[best].hits) best = i;
  }
  if (ghosts_[best].hits > ghosts_[chosen_].hits * (1 + hysteresis_)) chosen_ = best;
}

void Ghosts::fade(Instant now) {
  const int64_t since = now.nanoseconds - faded_.nanoseconds;
  faded_ = now;
  const double factor =
      policy::fixed_exp2(-static_cast<double>(since) / static_cast<double>(memory_.nanoseconds));
  for (Ghost& ghost : ghosts_) ghost.hits = policy::without_dust(ghost.hits * factor);
}

}  // namespace memdecay::retention
