// Engines come, fall silent, go (see apply.h). Nothing of a living process is ever taken: only
// EngineGone, the certain end, frees what it could still write.
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/apply.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/lives.h"
#include "daemon/ledger/on_fence.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/slots.h"

namespace memdecay::ledger {
namespace {

// Dead engines that status still shows.
constexpr size_t kDeadShown = 64;

void forget_old_dead(State& state) {
  size_t dead = 0;
  for (const auto& [id, engine] : state.engines) dead += engine.state == EngineState::kDead;
  for (auto it = state.engines.begin(); dead > kDeadShown && it != state.engines.end();) {
    if (it->second.state == EngineState::kDead) {
      it = state.engines.erase(it);
      --dead;
    } else {
      ++it;
    }
  }
}

void end_leases(Context& context, EngineId engine) {
  std::vector<LeaseId> ended;
  for (const auto& [id, lease] : context.state.leases) {
    if (lease.engine == engine) ended.push_back(id);
  }
  for (const LeaseId id : ended) end_lease(context, id);
}

// Fences that will never pass: unsealed pages never were, readers are gone.
void end_fences(Context& context, EngineId engine) {
  State& state = context.state;
  auto it = state.fences.lower_bound({engine, Fence{}});
  while (it != state.fences.end() && it->first.first == engine) {
    const std::vector<FenceWatch> watches = std::move(it->second);
    state.fences.erase(it);
    for (const FenceWatch& watch : watches) fence_over(context, watch);
    it = state.fences.lower_bound({engine, Fence{}});
  }
}

void free_quarantined(Context& context, EngineId engine) {
  std::vector<SlotRef> held;
  for (auto& [id, slab] : context.state.slabs) {
    for (uint32_t i = 0; i < slab.slots.size(); ++i) {
      Slot& slot = slab.slots[i];
      if (slot.state != SlotState::kQuarantined || slot.writer != engine) continue;
      slot.writer = {};
      held.push_back({id, i, slot.generation});
    }
  }
  for (const SlotRef& ref : held) settle_quarantine(context, ref);
}

std::vector<SessionId> sessions_of(const State& state, EngineId engine) {
  std::vector<SessionId> sessions;
  for (const auto& [id, session] : state.sessions) {
    if (session->engine == engine) sessions.push_back(id);
  }
  return sessions;
}

// What may have been lost with the connection; hearing it twice does no harm.
void tell_again(Context& context, const Session& session) {
  EvictNotice evict;
  RestoreNotice restore;
  for (PageIndex page = 0; page < session.pages.size(); ++page) {
    const View& view = session.pages[page];
    if (view.state == PageState::kAsked) {
      if (evict.pages.empty()) evict.decision = view.decision;
      evict.pages.emplace_back(page, Reason::kPoolPressure);
    }
    if (view.state == PageState::kRestoring && view.announced) {
      restore.pages.push_back(page_view(context.state, session, page));
    }
  }
  const EngineId engine = session.engine;
  if (!evict.pages.empty()) notify(context, engine, session.id, std::move(evict));
  if (!restore.pages.empty()) notify(context, engine, session.id, std::move(restore));
  if (session.ready) notify(context, engine, session.id, ReadyNotice{});
}

void end_engine(Context& context, Engine& engine) {
  State& state = context.state;
  const EngineId id = engine.id;
  for (const SessionId session : sessions_of(state, id)) {
    if (Session* orphaned = find_session(state, session)) orphan(context, *orphaned);
  }
  engine.state = EngineState::kDead;
  end_leases(context, id);
  end_fences(context, id);
  free_quarantined(context, id);
  if (engine.buffer) {
    if (Slab* buffer = find_slab(state, engine.buffer)) retire_slab(context, *buffer);
  }
  forget_mapper(context, id);
  forget_old_dead(state);
}

}  // namespace

void apply(Context& context, const Attach& event) {
  State& state = context.state;
  if (state.draining) {
    refuse(context, event.origin.request,
           make_error(ErrorCode::kUnavailable, "attach", "the daemon is shutting down",
                      "attach to its successor"));
    return;
  }
  if (!state.tenants.contains(event.origin.tenant)) {
    refuse(context, event.origin.request,
           make_error(ErrorCode::kPermission, "attach", "the credential belongs to no tenant",
                      "add it to tenants[] in the configuration"));
    return;
  }
  Engine engine{.id = new_id<EngineId>(state),
                .epoch = Epoch{1},
                .tenant = event.origin.tenant,
                .name = event.name,
                .placement = event.placement,
                .blocks = event.blocks,
                .purpose = event.purpose};
  reply(context, event.origin.request, AttachReply{engine.id, engine.epoch});
  state.engines.emplace(engine.id, std::move(engine));
}

void apply(Context& context, const Reattach& event) {
  Engine* engine = find_engine(context.state, event.origin.engine);
  if (engine == nullptr || engine->state == EngineState::kDead ||
      engine->tenant != event.origin.tenant) {
    refuse(context, event.origin.request,
           make_error(ErrorCode::kPermission, absl::StrCat("engine ", event.origin.engine.value),
                      "not known or dead", "attach as a new engine and resume its sessions"));
    return;
  }
  if (engine->state != EngineState::kDisconnected) {
    refuse(context, event.origin.request,
           make_error(ErrorCode::kBusy, absl::StrCat("engine ", event.origin.engine.value),
                      "it is attached already", "close the other connection first"));
    return;
  }
  ++engine->epoch.value;
  engine->state = EngineState::kAlive;
  reply(context, event.origin.request, AttachReply{engine->id, engine->epoch});
  for (const SessionId id : sessions_of(context.state, engine->id)) {
    tell_again(context, *find_session(context.state, id));
  }
}

void apply(Context& context, const Disconnected& event) {
  Engine* engine = find_engine(context.state, event.engine);
  if (engine == nullptr || engine->state == EngineState::kDead) return;
  engine->state = EngineState::kDisconnected;
}

void apply(Context& context, const Silence& event) {
  Engine* engine = find_engine(context.state, event.engine);
  if (engine == nullptr) return;
  if (event.now == Silence::Now::kSilent && engine->state == EngineState::kAlive) {
    engine->state = EngineState::kSilent;
  } else if (event.now == Silence::Now::kSpeaking && engine->state == EngineState::kSilent) {
    engine->state = EngineState::kAlive;
  }
}

void apply(Context& context, const EngineGone& event) {
  Engine* engine = find_engine(context.state, event.engine);
  if (engine == nullptr || engine->state == EngineState::kDead) return;
  end_engine(context, *engine);
}

void apply(Context& context, const Leave& event) {
  const absl::StatusOr<Engine*> engine = engine_for(context.state, event.origin);
  answer(context, event.origin.request, engine.status());
  if (engine.ok()) end_engine(context, **engine);
}

void apply(Context& context, const SlabUnmapped& event) {
  const absl::StatusOr<Engine*> engine = engine_for(context.state, event.origin);
  answer(context, event.origin.request, engine.status());
  if (engine.ok()) unmapped(context, (*engine)->id, event.slab);
}

}  // namespace memdecay::ledger
