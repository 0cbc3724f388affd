// ScriptedEngine: what an engine process does between statements, in simulation: keeps its page
// table, maps slabs, answers evictions, withdrawals and restores by itself or, after `noack`, not
// before `ack`. A frozen one reads nothing; a detached one hears again once it is back.
// Thread: the simulation's one. Invariants: the table holds exactly the pages that it reads;
// nothing is answered twice; a dead engine says nothing. Not here: what the script makes it ask
// (sim_world.cc), bytes (tests/sim/sim_bytes.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "daemon/base/random.h"
#include "daemon/ledger/effects.h"
#include "daemon/ledger/events.h"
#include "tests/scenario/world.h"
#include "tests/sim/sim_world.h"

namespace memdecay::scenario {

class ScriptedEngine {
 public:
  using Item = std::variant<ledger::Notice, ledger::Reply, ledger::ShareSlab>;
  enum class Life : uint8_t { kAlive, kFrozen, kDetached, kGone };

  // `seed` decides whether it reads everything that waits before it answers (both happen: messages
  // cross).
  ScriptedEngine(EngineSpec spec, sim::SimWorld& world, uint64_t seed);

  const EngineSpec& spec() const { return spec_; }
  Life life() const { return life_; }
  EngineId id() const { return id_; }
  Epoch epoch() const { return epoch_; }
  ledger::Origin origin(RequestId request, TenantId tenant) const;

  // ---- the wire, towards it
  void deliver(Item item) { inbox_.push_back(std::move(item)); }
  // Something waits that it can handle now.
  bool can_run() const;
  // Handles the oldest; replies go to `answered`.
  void run(const std::function<void(const ledger::Reply&)>& answered);

  // ---- deeds
  void attached(EngineId id, Epoch epoch, TenantId tenant);
  void set_life(Life life);  // kGone: mappings and inbox are gone
  void set_acks(bool automatic);
  std::optional<Instant> frozen_since() const { return frozen_since_; }
  bool told_silent = false;

  // ---- before a request leaves: what the engine itself does with it. A status: it does not leave.
  absl::Status prepare(ledger::Event& event);

  std::optional<SlotRef> mapped(SessionId session, PageIndex page) const;
  const std::vector<Heard>& heard() const { return heard_; }

 private:
  struct Table {
    std::map<PageIndex, SlotRef> pages;
    uint32_t granted = 0;   // pages of the session that this engine knows
    uint32_t position = 0;  // tokens written
  };

  void hear(const ledger::Notice& notice);
  void answer(const ledger::Notice& notice);
  void give_up(const ledger::Notice& notice, const ledger::EvictNotice& evict);
  // A withdrawal of the page has arrived behind the notice that is being answered.
  bool withdrawn_behind(SessionId session, DecisionId decision, PageIndex page) const;
  void withdraw(const ledger::Notice& notice, const ledger::WithdrawNotice& withdraw);
  void map_restored(const ledger::Notice& notice, const ledger::RestoreNotice& restore);
  void released(const ledger::ReleasedNotice& released);
  void learn(const ledger::Reply& reply);
  void learn_pages(SessionId session, const std::vector<ledger::PageView>& views);
  void forget_from(SessionId session, PageIndex first);
  // Engine placement: blocks that hold nothing, are not lent and not on their way.
  std::vector<uint32_t> free_blocks() const;
  void post(ledger::Event event);
  ledger::Origin own_origin() const { return origin(RequestId{}, tenant_); }

  EngineSpec spec_;
  sim::SimWorld& world_;
  uint32_t page_tokens_;
  EngineId id_;
  Epoch epoch_;
  TenantId tenant_;
  Life life_ = Life::kAlive;
  bool acks_ = true;
  base::Random random_;
  std::optional<Instant> frozen_since_;
  std::deque<Item> inbox_;
  std::deque<ledger::Notice> unanswered_;  // after noack
  std::map<SessionId, Table> tables_;
  // Requests whose reply changes the table.
  std::map<RequestId, SessionId> asked_;
  std::map<RequestId, std::vector<uint32_t>> blocks_asked_;
  // Engine placement: pages whose block is lent to the daemon until Released.
  std::map<std::pair<SessionId, PageIndex>, uint32_t> lent_;
  std::vector<Heard> heard_;
};

}  // namespace memdecay::scenario
