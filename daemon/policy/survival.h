// How likely a session that waits will compute again soon, learnt from how long sessions waited.
//
// Sessions' clocks cannot be compared, so which session gives pages first is decided by this, above
// the pages' scores. For each state the chance to resume is a rate that depends on how long a
// session has waited already (a user who was away for an hour seldom comes back in the next
// minute): constant inside a bucket of waiting time, buckets doubling from a second on. A bucket's
// rate is what was resumed in it, over the time that was waited in it. Time is counted as it
// passes, also for sessions that wait still or end without resuming, so waits that are cut off
// (censored) do not make resuming look fast.
// Until there is data a rate is the prior of its state, worth a quarter of a resumption
// in each bucket. What was counted
// fades: each resumption in a state takes 1/256 of what that state knew before.
// Thread: a value. Pure. Not here: the order of sessions (ledger/choose.cc),
// which still goes by state alone.
#pragma once

#include <array>
#include <cstddef>

#include "proto/contract/vocabulary.h"

namespace memdecay::policy {

class Survival {
 public:
  // A session in this state waited from `from` to `to` seconds after it had begun to wait.
  void waited(SessionState state, double from, double to);
  // It was woken up, having waited for so long (counted by waited() already).
  void resumed(SessionState state, double after);

  // log2 of the probability that a session that has waited for `idle` seconds is woken up within
  // the next `horizon` seconds; at most 0, finite.
  double log2_resume(SessionState state, double idle, double horizon) const;

 private:
  static constexpr size_t kBuckets = 21;  // the last from 2^19 s (six days) on
  struct Bucket {
    double seconds = 0.0;
    double resumptions = 0.0;
  };

  std::array<std::array<Bucket, kBuckets>, kSessionStates> states_{};
};

}  // namespace memdecay::policy
