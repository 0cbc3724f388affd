// The short words of context.h.
#include "daemon/ledger/context.h"

#include "absl/strings/str_cat.h"
#include "proto/contract/text.h"

namespace memdecay::ledger {

void reply(Context& context, RequestId request, ReplyBody body) {
  if (!request) return;
  context.out.emplace_back(Reply{request, absl::OkStatus(), std::move(body)});
}

void refuse(Context& context, RequestId request, const absl::Status& status) {
  count(context.state, "errors_total",
        absl::StrCat("code=", as_absl(error_name(error_code(status)))));
  if (!request) return;
  context.out.emplace_back(Reply{request, status, Done{}});
}

void answer(Context& context, RequestId request, const absl::Status& status) {
  if (status.ok()) {
    reply(context, request);
  } else {
    refuse(context, request, status);
  }
}

void notify(Context& context, EngineId engine, SessionId session, NoticeBody body) {
  const Engine* to = find_engine(context.state, engine);
  if (to == nullptr || to->state == EngineState::kDead) return;
  context.out.emplace_back(Notice{engine, session, std::move(body)});
}

void count(State& state, std::string_view name, std::string_view labels, double by) {
  std::string key(name);
  if (!labels.empty()) key.append("|").append(labels);
  state.counters.values[key] += by;
}

Instant set_timer(Context& context, Timer::Kind kind, Duration after, uint64_t id, PageIndex page) {
  const Instant due = context.now + after;
  context.state.timers.insert(Timer{due, kind, id, page});
  return due;
}

void cancel_timer(State& state, Timer::Kind kind, std::optional<Instant>& due, uint64_t id,
                  PageIndex page) {
  if (!due.has_value()) return;
  state.timers.erase(Timer{*due, kind, id, page});
  due.reset();
}

Session* find_session(State& state, SessionId id) {
  const auto found = state.sessions.find(id);
  return found == state.sessions.end() ? nullptr : found->second.get();
}

Engine* find_engine(State& state, EngineId id) {
  const auto found = state.engines.find(id);
  return found == state.engines.end() ? nullptr : &found->second;
}

Content* find_content(State& state, ContentId id) {
  const auto found = state.contents.find(id);
  return found == state.contents.end() ? nullptr : found->second.get();
}

Tenant& tenant_of(State& state, TenantId id) { return state.tenants.at(id); }

Slab* find_slab(State& state, SlabId id) {
  const auto found = state.slabs.find(id);
  return found == state.slabs.end() ? nullptr : &found->second;
}

Slot* find_slot(State& state, const SlotRef& ref) {
  Slab* slab = find_slab(state, ref.slab);
  if (slab == nullptr || ref.index >= slab->slots.size()) return nullptr;
  Slot& slot = slab->slots[ref.index];
  return slot.generation == ref.generation ? &slot : nullptr;
}

absl::Status unknown_session(SessionId id) {
  return make_error(ErrorCode::kUnknownSession, absl::StrCat("session ", id.value),
                    "no such session of this tenant", "open or resume one first");
}

absl::StatusOr<Session*> session_for(State& state, const Origin& origin, SessionId id) {
  Session* session = find_session(state, id);
  if (session == nullptr || (origin.tenant && session->tenant != origin.tenant)) {
    return unknown_session(id);
  }
  return session;
}

absl::StatusOr<Engine*> engine_for(State& state, const Origin& origin) {
  Engine* engine = find_engine(state, origin.engine);
  if (engine == nullptr || engine->state == EngineState::kDead) {
    return make_error(ErrorCode::kPermission, absl::StrCat("engine ", origin.engine.value),
                      "not attached", "attach through the handle socket first");
  }
  if (origin.epoch != engine->epoch) {
    return make_error(ErrorCode::kStaleEpoch, absl::StrCat("epoch ", origin.epoch.value),
                      absl::StrCat("the engine is at epoch ", engine->epoch.value),
                      "attach again and use the new epoch");
  }
  return engine;
}

absl::StatusOr<Session*> own_session(State& state, const Origin& origin, SessionId id) {
  const absl::StatusOr<Engine*> engine = engine_for(state, origin);
  if (!engine.ok()) return engine.status();
  absl::StatusOr<Session*> session = session_for(state, origin, id);
  if (!session.ok()) return session;
  if ((*session)->engine != origin.engine) {
    return make_error(ErrorCode::kUnknownSession, absl::StrCat("session ", id.value),
                      "it belongs to another engine or to none", "resume it first");
  }
  return session;
}

}  // namespace memdecay::ledger
