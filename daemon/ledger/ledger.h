// The ledger: who holds which page, where its bytes are, what must happen next. It decides and
// never acts: `step` takes one event and the time and appends effects; no thread, lock, clock, file
// or device is behind it, so the same events give the same decisions in the daemon, in simulation
// and in a replay.
//
// Thread: one owns it (the reactor's). Invariants: audit.h states them and checks every one.
// Not here: bytes (daemon/tiers), sockets (daemon/server), scores (daemon/policy).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/ledger/effects.h"
#include "daemon/ledger/events.h"
#include "daemon/ledger/options.h"
#include "daemon/ledger/tape.h"
#include "proto/contract/clock.h"

namespace memdecay::ledger {

struct State;

class Ledger {
 public:
  explicit Ledger(Options options);
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger();

  // Applies one event at `now` (never before the last one's) and appends what must be done.
  void step(Instant now, const Event& event, Effects& effects);

  // When the next Tick is due: the earliest deadline, lease or TTL.
  std::optional<Instant> next_deadline() const;

  // Reload: applies what can change while running; refused values change nothing
  // (invalid_argument).
  absl::Status reconfigure(Instant now, const Options& options, Effects& effects);

  // Recording (tape.h): steps leave events on a tape until it is stopped; whoever runs the ledger
  // takes them after each step. One tape at a time: `start_tape` replaces an earlier one.
  void start_tape(Instant now, TapeOptions options);
  void stop_tape();
  std::vector<trace::Event> take_tape();

  // Recomputes every counter from the page states and checks every invariant. Empty: all is well.
  std::vector<std::string> audit() const;

  // Read access for reports (report.h).
  const State& state() const { return *state_; }

  // Lab and tests only: keys are compared by their first `bits` bits, so that collisions happen.
  void truncate_keys_for_test(int bits);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace memdecay::ledger
