// The reactor: the one thread that owns the ledger. It takes events from three bounded lanes
// (completions and acknowledgements, the engines' streams, requests), steps the ledger and carries
// out the effects in order. Joins ledger and tiers; knows no sockets.
//
// Lanes: complete() is never refused (bounded by what is in flight); post_stream() answers kFull
// when its lane is full: stop reading that stream until wake; post_request() answers `unavailable`
// with a retry hint.
// Thread: run_ready()/run() on one thread; the post functions on any.
// Invariants: an event is stepped exactly once, in its lane's order; effects of a step run before
// the next step.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "daemon/ledger/events.h"
#include "daemon/ledger/ledger.h"
#include "daemon/reactor/ports.h"

namespace memdecay::reactor {

enum class Posted : uint8_t { kTaken, kFull };

// One step, for metrics, traces and audits; valid during the call only.
struct StepReport {
  Instant at;
  Duration took;  // of the ledger alone
  const ledger::Event& event;
  const ledger::Effects& effects;
  std::vector<trace::Event>& tape;  // what a recording hears; to be moved from
};

class Reactor {
 public:
  // The ports outlive the reactor.
  Reactor(ledger::Options options, Clock& clock, Edge& edge, Bytes& bytes, Fences& fences);
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  void complete(ledger::Event event);
  Posted post_stream(ledger::Event event);
  absl::Status post_request(ledger::Event event);
  // Runs `look` on the reactor's thread between two steps. It must not keep the reference.
  void inspect(std::function<void(ledger::Ledger&)> look);
  // Reload, on the reactor's thread; `done` gets the outcome.
  void reconfigure(ledger::Options options, std::function<void(absl::Status)> done);
  // Set before the first event. `look` sees every step after its effects were carried out; `wake`
  // is called once the stream lane, having answered kFull, is half empty again. Both run on the
  // reactor's thread; `look` is the place of decision_seconds.
  void on_step(std::function<void(const StepReport&)> look);
  void on_stream_room(std::function<void()> wake);
  // A number that no other request of this reactor has.
  RequestId next_request();

  // Simulation: steps everything that is queued, including what effects complete at once; then
  // Ticks if a deadline is due. Returns the number of steps; a bounded number a call.
  size_t run_ready();
  std::optional<Instant> next_deadline() const;

  // Daemon: runs until stop(); waits for events or the next deadline.
  void run();
  void stop();

  struct Depths {
    size_t completions = 0;
    size_t stream = 0;
    size_t requests = 0;
    uint64_t rejected = 0;
  };
  Depths depths() const;

  // Only between runs, on the running thread.
  const ledger::Ledger& ledger() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace memdecay::reactor
