// A ledger with an obedient world around it: engines give up what they are asked for, copies and
// fences end at once. Time is a counter. What is measured is the ledger's step alone.
// Thread: one. Invariant: settle() leaves no effect unanswered.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/ledger/ledger.h"

namespace memdecay::bench {

class LedgerWorld {
 public:
  // Attaches one engine.
  explicit LedgerWorld(ledger::Options options);

  ledger::Origin origin();  // a new request of the engine
  // One step, in nanoseconds. Its effects wait for settle().
  double step(const ledger::Event& event);
  // While it records, a step also leaves its events, and somebody takes them.
  void record();
  void stop_recording();
  // Answers all effects, and those of the answers. Checked: no reply is an error.
  void settle();
  // Both; what the ledger replied last.
  const ledger::Reply& call(const ledger::Event& event);

  // An open session of pages sealed with tokens of its own. `name` is unique.
  SessionId open(const std::string& name, Mode mode, uint32_t pages);
  void grow(SessionId session, uint32_t pages);
  // A seal of the next page, which was granted.
  ledger::Seal seal(SessionId session, PageIndex page, uint32_t pages);
  // One observation with equal mass on every page.
  ledger::Observe observation(SessionId session, uint32_t pages);
  void observe(SessionId session, uint32_t pages);

  const ledger::Ledger& ledger() const { return ledger_; }

 private:
  void answer(const ledger::Effect& effect);
  void answer_notice(const ledger::Notice& notice);

  ledger::Ledger ledger_;
  ledger::Effects effects_;
  ledger::Reply reply_;
  Instant now_{1};
  uint64_t last_request_ = 0;
  TokenId last_token_ = 0;
  EngineId engine_;
  Epoch epoch_;
};

}  // namespace memdecay::bench
