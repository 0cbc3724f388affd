// The swarm's run, its answers to notices and its checks. See swarm.h.
#include "tests/sim/swarm.h"

#include <algorithm>
#include <cstring>

#include "daemon/ledger/report.h"
#include "daemon/reactor/trace.h"
#include "proto/contract/error.h"

namespace memdecay::sim {
namespace {

constexpr size_t kEnoughProblems = 5;

ledger::Options swarm_ledger(uint64_t seed) {
  base::Random random(seed * 2 + 1);
  ledger::Options options;
  options.device_pages = static_cast<uint32_t>(6 + random.below(14));
  options.slab_pages = static_cast<uint32_t>(1 + random.below(3));
  options.host_pages = static_cast<uint32_t>(random.below(4) == 0 ? 0 : 4 + random.below(30));
  options.page_tokens = kSwarmPageTokens;
  options.sinks = random.below(2) == 0 ? 0 : kSwarmPageTokens;
  options.recent = static_cast<uint32_t>(random.below(2));
  options.ahead = static_cast<uint32_t>(random.below(3));
  options.orphan_limit = 3;
  options.tenants = {{.name = "a"}, {.name = "b"}};
  if (random.below(2) == 0) {
    options.tenants[0].reservation_pages = static_cast<uint32_t>(random.below(4));
    options.tenants[1].limit_pages = static_cast<uint32_t>(4 + random.below(8));
  }
  options.orphan_ttl = Duration::from_seconds(30);
  options.policy.page_tokens = kSwarmPageTokens;
  options.policy.sinks = options.sinks;
  options.policy.recent = options.recent;
  if (random.below(2) == 0) options.policy.name = "lru";
  return options;
}

SimOptions swarm_world(const SwarmOptions& options) {
  SimOptions world;
  world.ledger = swarm_ledger(options.seed);
  world.seed = options.seed;
  world.wrap_bytes = options.wrap_bytes;
  return world;
}

}  // namespace

Swarm::Swarm(const SwarmOptions& options) : options_(options), world_(swarm_world(options), *this) {
  world_.on_step([this](const reactor::StepReport& step) { step_done(step); });
  if (options.trace) world_.trace_to(options.trace);
}

void Swarm::problem(const std::string& what) {
  if (result_.problems.size() >= kEnoughProblems) return;
  result_.problems.push_back("seed " + std::to_string(options_.seed) + " step " +
                             std::to_string(world_.steps()) + ": " + what);
  if (options_.trace) options_.trace("PROBLEM " + result_.problems.back());
}

void Swarm::step_done(const reactor::StepReport& step) {
  if (options_.tape) options_.tape(world_.ledger(), step.tape);
  for (const std::string& finding : world_.ledger().audit()) {
    problem("audit after " + reactor::to_text(step.event) + ": " + finding);
  }
}

SwarmResult Swarm::run() {
  for (int i = 0; i < 2; ++i) attach();
  world_.run_until_idle();
  for (int i = 0; i < 3; ++i) open();
  if (options_.faults == SwarmOptions::Faults::kAll && chance(30)) {
    world_.gate().lose_completions(0.05, options_.seed);
  }
  for (uint32_t i = 0; i < options_.operations && result_.problems.empty(); ++i) {
    if (i == options_.tape_from) {
      world_.inspect([this](ledger::Ledger& ledger) {
        if (!options_.tape) return;
        ledger.start_tape(world_.clock().now(), {.salt = {options_.seed, 1}});
      });
    }
    operate();
    run_chores(60);
    if (chance(70)) {
      rest();
    } else {
      for (uint32_t turns = below(6); turns > 0; --turns) world_.turn();
    }
    compare_mapped();
  }
  if (result_.problems.empty()) wind_down();
  result_.trace_hash = world_.trace_hash();
  result_.steps = world_.steps();
  return result_;
}

void Swarm::operate() {
  struct Choice {
    uint32_t weight;
    void (Swarm::*operation)();
  };
  static constexpr Choice kCalls[] = {
      {6, &Swarm::attach},     {8, &Swarm::open},  {20, &Swarm::grow},    {20, &Swarm::write},
      {20, &Swarm::seal},      {3, &Swarm::fork},  {3, &Swarm::truncate}, {7, &Swarm::park},
      {14, &Swarm::unpark},    {4, &Swarm::close}, {4, &Swarm::resume},   {6, &Swarm::acquire},
      {5, &Swarm::pressure},   {9, &Swarm::evict}, {9, &Swarm::restore},  {2, &Swarm::drop},
      {6, &Swarm::observe},    {5, &Swarm::mark},  {2, &Swarm::budget},   {1, &Swarm::disconnect},
      {3, &Swarm::end_engine}, {1, &Swarm::leave}, {4, &Swarm::advance},  {9, &Swarm::signal_some},
  };
  static constexpr Choice kFaults[] = {
      {4, &Swarm::hold_some}, {3, &Swarm::damage}, {1, &Swarm::refuse_memory}};
  const auto draw = [this](std::span<const Choice> choices) {
    uint32_t total = 0;
    for (const Choice& choice : choices) total += choice.weight;
    uint32_t at = below(total);
    for (const Choice& choice : choices) {
      if (at < choice.weight) return (this->*choice.operation)();
      at -= choice.weight;
    }
  };
  if (options_.faults == SwarmOptions::Faults::kAll && chance(6)) return draw(kFaults);
  draw(kCalls);
}

// ---- checks
// -----------------------------------------------------------------------------------------

void Swarm::expect_bytes(EngineId engine, const SlotRef& slot, uint64_t seed,
                         const std::string& what) {
  ++result_.compared;
  const absl::StatusOr<PageBytes> bytes = world_.bytes().read(engine, slot);
  const std::string where = what + " slot " + std::to_string(slot.slab.value) + "/" +
                            std::to_string(slot.index) + " of engine " +
                            std::to_string(engine.value);
  if (!bytes.ok()) return problem(where + ": " + bytes.status().ToString());
  if (*bytes != pattern(seed)) problem(where + ": wrong bytes");
}

void Swarm::compare_mapped() {
  for (const auto& [id, session] : sessions_) {
    if (!session.engine || engines_.at(session.engine).life == ModelEngine::Life::kGone) continue;
    for (PageIndex index = 0; index < session.pages.size(); ++index) {
      const ModelPage& page = session.pages[index];
      if (page.phase != ModelPage::Phase::kSealed || !page.slot) continue;
      expect_bytes(session.engine, *page.slot, page.seed,
                   "page " + std::to_string(index) + " of session " + std::to_string(id.value));
    }
  }
}

void Swarm::rest() {
  if (world_.run_until_idle() == SimWorld::Rest::kRestless) problem("no rest: too many steps");
}

void Swarm::advance_by(Duration by) {
  if (world_.advance(by) == SimWorld::Rest::kRestless) problem("no rest in time: too many steps");
}

// Everything that anybody waits for gets its turn.
void Swarm::settle() {
  for (int round = 0; round < 40 && result_.problems.empty(); ++round) {
    for (const ledger::StartCopy& held : world_.gate().held()) world_.gate().finish(held.content);
    for (auto& [id, engine] : engines_) {
      while (engine.life != ModelEngine::Life::kGone && !engine.fences.empty()) signal(engine, 0);
    }
    run_chores(100);
    rest();
    if (chores_.empty() && world_.gate().held().empty()) break;
  }
}

void Swarm::wind_down() {
  ending_ = Ending::kYes;
  using Memory = support::CopyGate::Memory;
  world_.gate().memory(Memory::kThere, Memory::kThere);
  world_.gate().lose_completions(0, 0);
  settle();
  compare_mapped();
  for (int round = 0; round < 12 && result_.problems.empty(); ++round) {  // beyond every deadline
    advance_by(Duration::from_seconds(5));
    settle();
  }
  compare_mapped();
  if (!waiting_.empty()) problem(waiting_.begin()->second.name + " was never answered");
  for (auto& [id, engine] : engines_) {
    if (engine.life == ModelEngine::Life::kDisconnected) gone(engine);
  }
  for (size_t left = engines_.size(); left > 0; --left) {
    leave();
    settle();
  }
  advance_by(Duration::from_seconds(100));  // sessions without engines expire
  settle();
  call("drop", ledger::Drop{operator_of({}), {}, {}, Tier::kHost, ledger::Drop::Reach::kAllTiers},
       {});
  settle();
  check_leftovers();
}

void Swarm::check_leftovers() {
  const ledger::StatusReport status = ledger::report_status(world_.ledger());
  const auto nothing = [this](const char* what, uint64_t count) {
    if (count != 0) problem(std::to_string(count) + " " + what + " left at the end");
  };
  if (options_.faults == SwarmOptions::Faults::kNone) {
    for (const ledger::Sample& sample : ledger::report_metrics(world_.ledger())) {
      if (sample.name == "checksum_failures_total" && sample.value > 0) {
        problem("checksums failed and nothing was damaged");
      }
    }
  }
  nothing("sessions", status.sessions);
  nothing("entries", status.entries);
  nothing("leases", status.leases);
  nothing("pins", status.pinned_pages);
  nothing("copies in flight", status.copies_in_flight);
  nothing("waiting requests", status.waiting_requests);
  nothing("host pages in the ledger's books", status.host.used_pages);
  nothing("host replicas", world_.bytes().host_replicas());
  nothing("copies of the machine", world_.bytes().in_flight().size());
  nothing("unanswered calls", waiting_.size());
  for (int state = 0; state < kSlotStates; ++state) {
    const auto slot = static_cast<SlotState>(state);
    if (slot == SlotState::kFree) continue;
    nothing(std::string(slot_state_name(slot)).c_str(), status.slots[static_cast<size_t>(state)]);
  }
}

void Swarm::forget_mappings(ModelSession& session) {
  session.engine = {};
  session.turn = ModelSession::Turn::kFree;
  std::erase_if(session.pages,
                [](const ModelPage& page) { return page.phase < ModelPage::Phase::kSealing; });
  for (ModelPage& page : session.pages) {
    page.slot.reset();
    page.arriving.reset();
    page.asked.reset();
  }
}

ModelSession* Swarm::session_of(SessionId id) {
  const auto at = sessions_.find(id);
  return at == sessions_.end() ? nullptr : &at->second;
}

ModelEngine* Swarm::pick_engine() {
  std::vector<ModelEngine*> alive;
  for (auto& [id, engine] : engines_) {
    if (engine.life == ModelEngine::Life::kAlive) alive.push_back(&engine);
  }
  return alive.empty() ? nullptr : alive[below(alive.size())];
}

ModelSession* Swarm::pick_session() {
  std::vector<ModelSession*> free;
  for (auto& [id, session] : sessions_) {
    if (session.engine && session.turn == ModelSession::Turn::kFree &&
        engines_.at(session.engine).life == ModelEngine::Life::kAlive) {
      free.push_back(&session);
    }
  }
  return free.empty() ? nullptr : free[below(free.size())];
}

}  // namespace memdecay::sim
