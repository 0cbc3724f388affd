// Swarm: random engines and sessions in a SimWorld, with the oracle of swarm_model.h. Every choice
// comes from one seed. After every step the ledger is audited; after every operation every mapped
// page is compared; at the end everything is let go and nothing may be left.
// Thread: the test's one. Not here: what a rule means in detail (tests/scenarios).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/sim_world.h"
#include "tests/sim/swarm_model.h"

namespace memdecay::sim {

struct SwarmOptions {
  uint64_t seed = 1;
  uint32_t operations = 800;
  enum class Faults : uint8_t { kNone, kAll } faults = Faults::kAll;
  std::function<std::unique_ptr<reactor::Bytes>(SimBytes&)> wrap_bytes;
  std::function<void(const std::string&)> trace;  // every line, if set
  // If set, a recording runs from that operation on; sees what each step has left on its tape.
  std::function<void(const ledger::Ledger&, const std::vector<trace::Event>&)> tape;
  std::optional<uint32_t> tape_from;
};

struct SwarmResult {
  std::vector<std::string> problems;  // empty: the run was right
  uint64_t trace_hash = 0;
  uint64_t steps = 0;
  uint64_t compared = 0;                    // pages whose bytes were compared
  uint64_t restored = 0;                    // Restore notices
  uint64_t acquired = 0;                    // pages mapped by Acquire
  std::map<std::string, uint64_t> done;     // calls that went well, by name
  std::map<std::string, uint64_t> refused;  // typed errors, by call and code
};

class Swarm final : public reactor::Edge {
 public:
  explicit Swarm(const SwarmOptions& options);
  SwarmResult run();

  void reply(const ledger::Reply& reply) override;
  void notify(const ledger::Notice& notice) override;
  void share_slab(const ledger::ShareSlab& share) override;

 private:
  using Answer = std::function<void(const ledger::Reply&)>;
  struct Waiting {
    std::string name;
    Answer answer;
    Answer refused;
    SessionId blocks;
  };
  struct Chore {
    EngineId engine;
    std::function<void()> work;
  };

  // ---- calls (swarm_calls.cc)
  // ---------------------------------------------------------------------
  ledger::Origin origin(const ModelEngine& engine);
  ledger::Origin operator_of(TenantId tenant) { return origin({.tenant = tenant}); }
  // Posts an event that has a fresh request in its origin. `answer` is run for a reply that is ok,
  // `refused` for any other. `blocks`: the session makes no other structural call meanwhile.
  void call(const char* name, ledger::Event event, Answer answer, SessionId blocks = {},
            Answer refused = {});
  void attach();
  void open();
  void grow();
  void write();
  void seal();
  void fork();
  void truncate();
  void park();
  void unpark();
  void close();
  void resume();
  void acquire();
  void pressure();
  void evict();
  void restore();
  void drop();
  void observe();
  void mark();
  void budget();
  void disconnect();
  void end_engine();
  void leave();

  // ---- the world's doing (swarm_faults.cc)
  // ----------------------------------------------------------
  void advance();
  void signal_some();
  void hold_some();
  void damage();
  void refuse_memory();

  // ---- the model (swarm.cc)
  // ---------------------------------------------------------------------------
  void problem(const std::string& what);
  void deliver(ModelSession& session, const ledger::Notice& notice);
  void owe(EngineId engine, std::function<void()> work) {
    chores_.push_back({engine, std::move(work)});
  }
  void gone(ModelEngine& engine);
  void step_done(const reactor::StepReport& step);
  void operate();
  void rest();
  void advance_by(Duration by);
  void settle();
  void wind_down();
  void check_leftovers();
  void compare_mapped();
  void expect_bytes(EngineId engine, const SlotRef& slot, uint64_t seed, const std::string& what);
  void run_chores(uint32_t percent);
  void adopt(ModelSession& session, const std::vector<ledger::PageView>& views);
  void on_evict(ModelSession& session, const ledger::EvictNotice& notice);
  void on_withdraw(ModelSession& session, const ledger::WithdrawNotice& notice);
  void on_released(ModelSession& session, const ledger::ReleasedNotice& notice);
  void on_restore(ModelSession& session, const ledger::RestoreNotice& notice);
  void on_lost(ModelSession& session, PageIndex page);
  void on_failed(ModelSession& session, PageIndex page);
  void give_up(SessionId session, DecisionId decision);
  void confirm(SessionId session, PageIndex page);
  // Fence of a step that has ended, or (sometimes) of one that still uses these slots.
  Fence fence_for(ModelEngine& engine, std::vector<OpenUse> uses);
  void signal(ModelEngine& engine, size_t which);
  void forget_mappings(ModelSession& session);
  ModelEngine* pick_engine();
  ModelSession* pick_session();  // of a living engine, with no structural call under way
  ModelSession* session_of(SessionId id);
  bool chance(uint32_t percent) { return world_.random().below(100) < percent; }
  uint32_t below(uint64_t bound) { return static_cast<uint32_t>(world_.random().below(bound)); }

  SwarmOptions options_;
  SimWorld world_;
  SwarmResult result_;
  std::map<EngineId, ModelEngine> engines_;
  std::map<SessionId, ModelSession> sessions_;
  std::map<RequestId, Waiting> waiting_;
  std::vector<Chore> chores_;          // answers that engines owe
  std::vector<ledger::Notice> early_;  // about pages that a reply of the same step will tell of
  std::vector<std::pair<LeaseId, TenantId>> leases_;
  uint64_t nonce_ = 0;
  enum class Ending : uint8_t { kNo, kYes } ending_ = Ending::kNo;
};

}  // namespace memdecay::sim
