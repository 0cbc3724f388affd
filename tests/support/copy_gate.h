// The copy gate: a Bytes port that stands before the real one and holds, finishes, fails, reorders
// or loses named copies, and refuses memory. Names are (content, kind). Without orders it changes
// nothing. Used by the simulation and by memdecayd-lab; a release daemon does not contain it.
// Thread: the reactor's (the lab's calls come through Reactor::inspect).
// Invariants: a copy is passed on at most once; a held copy that was cancelled never runs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "daemon/base/random.h"
#include "daemon/ledger/effects.h"
#include "daemon/ledger/events.h"
#include "daemon/reactor/ports.h"

namespace memdecay::support {

// How a call like finish() found the copy.
enum class Found : uint8_t { kHeldCopy, kOnlyAnOrder, kNothing };

class CopyGate final : public reactor::Bytes {
 public:
  // `complete` is Reactor::complete; `inner` outlives the gate.
  using Complete = std::function<void(ledger::Event)>;
  CopyGate(reactor::Bytes& inner, Complete complete);

  // The next copy of that content and kind waits, once.
  void hold(ContentId content, ledger::CopyKind kind);
  // The held copy of that content runs (fails); without one the order to hold is lifted.
  Found finish(ContentId content);
  Found fail(ContentId content, absl::Status status);
  // The next copy of `first` starts only when one of `second` has ended.
  void reorder(ContentId first, ContentId second);
  // From now on a copy's completion gets lost with this probability; the bytes do move. What the
  // copy holds is given back when the ledger cancels it.
  void lose_completions(double probability, uint64_t seed);
  // Refused memory: slabs cannot be made; copies to the host fail. Both resource_exhausted.
  enum class Memory : uint8_t { kThere, kRefused };
  void memory(Memory device, Memory host);

  // Copies that wait for finish() or fail(), oldest first.
  std::vector<ledger::StartCopy> held() const;
  uint64_t lost() const { return lost_count_; }
  // Copies passed on whose end has not been seen; neither those held nor those that got lost.
  size_t running() const { return running_.size() - lost_.size(); }

  absl::Status create_slab(const ledger::CreateSlab& slab) override;
  void destroy_slab(SlabId slab) override;
  void start_copy(const ledger::StartCopy& copy) override;
  void cancel_copy(CopyId copy) override;
  std::optional<ledger::CopyDone> finish_copy(ledger::CopyDone done) override;
  void drop_host(ContentId content) override;
  void shadow_row(const ledger::ShadowRow& row) override;

 private:
  struct Held {
    ledger::StartCopy copy;
    enum class State : uint8_t { kWaiting, kCancelled } state = State::kWaiting;
  };

  void pass_on(const ledger::StartCopy& copy);
  std::optional<Held> take_held(ContentId content);

  reactor::Bytes& inner_;
  Complete complete_;
  std::set<std::pair<ContentId, ledger::CopyKind>> orders_;
  std::map<ContentId, ContentId> behind_;  // first -> second
  std::deque<Held> held_;
  std::map<CopyId, ContentId> running_;
  std::set<CopyId> losing_;                  // will be lost
  std::map<CopyId, ledger::CopyDone> lost_;  // have been
  double lose_probability_ = 0;
  base::Random random_{0};
  Memory device_memory_ = Memory::kThere;
  Memory host_memory_ = Memory::kThere;
  uint64_t lost_count_ = 0;
};

}  // namespace memdecay::support
