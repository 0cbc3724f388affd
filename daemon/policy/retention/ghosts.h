// Ghosts: which H suits a tier, learned from the uses themselves. Seven caches that hold keys only,
// one H each, live through a salted sample of the uses (one key in S, capacity / S) as the tier
// would; their hits fade with a half-life, the one with the most decides, and another must be
// better by the hysteresis to take over.
//
// Thread: the owner's. Pure: the sample hangs on salt and key alone. Memory: 7/S keys a held entry,
// about 75 bytes each. O(1) a use of a key outside the sample, seven times that of one inside.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "daemon/policy/retention/ladder.h"
#include "daemon/policy/retention/retention.h"

namespace memdecay::retention {

inline constexpr std::array<int64_t, 7> kHSeconds = {15, 30, 60, 120, 240, 480, 960};

class Ghosts {
 public:
  // Of the options: capacity, salt, ghost_memory, hysteresis, sample.
  explicit Ghosts(const RetentionOptions& options);

  // One use of a whole entry, of the level that it has by it.
  void use(const Use& use, int rung);
  Duration h() const { return Duration::from_seconds(kHSeconds[chosen_]); }
  // The tier has another size now. A smaller one is reached use by use.
  void resize(size_t capacity);
  size_t keys() const;  // of all ghosts together
  size_t bytes() const;

 private:
  struct Ghost {
    Ladder held;
    double hits = 0;
  };

  size_t share(size_t capacity) const;
  void choose();
  void fade(Instant now);

  const uint64_t salt_;
  const Duration memory_;
  const double hysteresis_;
  const uint32_t sample_;
  size_t capacity_;  // of one ghost
  std::array<Ghost, kHSeconds.size()> ghosts_;
  size_t chosen_;
  Instant faded_;
};

}  // namespace memdecay::retention
