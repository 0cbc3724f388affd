// SimWorld: the whole daemon below the sockets in one thread under a seed: clock, bytes, fences,
// copy gate and the real reactor and ledger. The caller brings the Edge (a scripted engine) and
// drives it: post events to reactor(), then run_until_idle().
//
// The same seed and the same calls give the same trace hash: it covers every event and every effect
// in the order of the steps, and nothing else.
// Thread: the test's one. Invariants: time moves only by advance(); run_until_idle() leaves only
// what is held, fenced, lost or waits for time. Not here: what engines answer (the Edge's owner
// posts it and runs again).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "daemon/base/random.h"
#include "daemon/ledger/ledger.h"
#include "daemon/ledger/options.h"
#include "daemon/reactor/ports.h"
#include "daemon/reactor/reactor.h"
#include "proto/contract/clock.h"
#include "tests/sim/sim_bytes.h"
#include "tests/support/copy_gate.h"

namespace memdecay::sim {

class SimClock final : public reactor::Clock {
 public:
  Instant now() const override { return now_; }
  void advance(Duration by) { now_ = now_ + by; }

 private:
  Instant now_{1'000'000'000};
};

// Timeline words of engines as numbers.
class SimFences final : public reactor::Fences {
 public:
  using Complete = std::function<void(ledger::Event)>;
  explicit SimFences(Complete complete) : complete_(std::move(complete)) {}

  // A fence of its own (a fresh word of member 0, value 1): open until signalled, in any order.
  Fence make(EngineId engine);
  // Stores the fence's value in its word; watches that it reaches are reported.
  void signal(EngineId engine, const Fence& fence);
  bool reached(EngineId engine, const Fence& fence) const;
  // Its watches end unreported. Post EngineGone after this.
  void engine_gone(EngineId engine);
  // Fences that are watched and have not passed.
  std::vector<std::pair<EngineId, Fence>> open() const;

  void watch(EngineId engine, const Fence& fence) override;

 private:
  using Word = std::tuple<EngineId, uint32_t, uint32_t>;  // engine, member, word

  Complete complete_;
  std::map<Word, uint64_t> words_;
  std::map<EngineId, uint32_t> next_word_;
  std::vector<std::pair<EngineId, Fence>> watched_;
};

struct SimOptions {
  ledger::Options ledger;
  uint64_t seed = 1;
  // In which order copies in flight complete.
  enum class CopyOrder : uint8_t { kRandom, kSubmitted } copy_order = CopyOrder::kRandom;
  // Between the gate and SimBytes, for planted bugs; none: nothing there.
  std::function<std::unique_ptr<reactor::Bytes>(SimBytes&)> wrap_bytes;
};

class SimWorld {
 public:
  // The edge outlives the world and is called only while the world runs.
  SimWorld(SimOptions options, reactor::Edge& edge);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  reactor::Reactor& reactor() { return *reactor_; }
  const ledger::Ledger& ledger() const { return reactor_->ledger(); }
  // Read and write access between steps (reports, hash bits).
  void inspect(std::function<void(ledger::Ledger&)> look);
  SimClock& clock() { return clock_; }
  SimBytes& bytes() { return *bytes_; }
  SimFences& fences() { return fences_; }
  support::CopyGate& gate() { return *gate_; }
  base::Random& random() { return random_; }

  // Steps what is queued, or else ends one copy. kNothing: only time or somebody else can go on.
  enum class Turn : uint8_t { kSomething, kNothing };
  Turn turn();
  // Turns until nothing is left. kRestless: there was more to do after kMostSteps steps, which is a
  // fault of the ledger.
  enum class Rest : uint8_t { kIdle, kRestless };
  Rest run_until_idle();
  static constexpr uint64_t kMostSteps = 50'000;
  // Moves the clock, stopping at every deadline of the ledger on the way and running until idle
  // there, and at the end. Stops where it does not come to rest.
  Rest advance(Duration by);

  // Sees every step after the trace has; replaces an earlier one.
  void on_step(std::function<void(const reactor::StepReport&)> look) { look_ = std::move(look); }
  // Text of every event and effect, one a line (--trace); null: none.
  void trace_to(std::function<void(const std::string&)> sink) { sink_ = std::move(sink); }
  uint64_t trace_hash() const { return trace_hash_; }
  uint64_t steps() const { return steps_; }

 private:
  void record(const reactor::StepReport& step);

  SimOptions options_;
  base::Random random_;
  SimClock clock_;
  SimFences fences_;
  std::unique_ptr<SimBytes> bytes_;
  std::unique_ptr<reactor::Bytes> wrapped_;
  std::unique_ptr<support::CopyGate> gate_;
  std::unique_ptr<reactor::Reactor> reactor_;
  std::function<void(const reactor::StepReport&)> look_;
  std::function<void(const std::string&)> sink_;
  uint64_t trace_hash_ = 0xcbf29ce484222325;
  uint64_t steps_ = 0;
};

}  // namespace memdecay::sim
