// What a step works with, and the short words in which rules speak: replies, notices, counts,
// timers, ids. Every function appends effects or counts; none decides.
// Thread: the ledger's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/ledger/state.h"
#include "proto/contract/error.h"

namespace memdecay::ledger {

// A step: the tables, the time, and what must be done.
struct Context {
  State& state;
  Instant now;
  Effects& out;
};

template <typename IdType>
IdType new_id(State& state) {
  return IdType{state.next_id++};
}

// Answers a request; request 0 is nobody.
void reply(Context& context, RequestId request, ReplyBody body = Done{});
// Answers with an error and counts it.
void refuse(Context& context, RequestId request, const absl::Status& status);
// Answers either way.
void answer(Context& context, RequestId request, const absl::Status& status);
// Tells an engine; nothing for engine 0 or a dead one.
void notify(Context& context, EngineId engine, SessionId session, NoticeBody body);

// Metrics: name of vocabulary.md without prefix, labels as "region=user|reason=budget".
void count(State& state, std::string_view name, std::string_view labels = {}, double by = 1);

// Sets a timer and returns when it is due; cancel it with that, or it fires and finds nothing.
Instant set_timer(Context& context, Timer::Kind kind, Duration after, uint64_t id,
                  PageIndex page = 0);
void cancel_timer(State& state, Timer::Kind kind, std::optional<Instant>& due, uint64_t id,
                  PageIndex page = 0);

// Look-ups; nullptr when there is none.
Session* find_session(State& state, SessionId id);
Engine* find_engine(State& state, EngineId id);
Content* find_content(State& state, ContentId id);
Tenant& tenant_of(State& state, TenantId id);
Slab* find_slab(State& state, SlabId id);
// The slot that the reference names, or nullptr if it is of another generation.
Slot* find_slot(State& state, const SlotRef& ref);

absl::Status unknown_session(SessionId id);
// The session that an engine or anybody of the tenant may speak about.
absl::StatusOr<Session*> session_for(State& state, const Origin& origin, SessionId id);
// The engine behind an origin: stale_epoch for an older epoch, permission if it is not alive.
absl::StatusOr<Engine*> engine_for(State& state, const Origin& origin);
// The session, which must belong to the engine that speaks.
absl::StatusOr<Session*> own_session(State& state, const Origin& origin, SessionId id);

}  // namespace memdecay::ledger
