// A session goes on in another engine process, or splits in two (see apply.h).
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/apply.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/grant.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/lives.h"
#include "daemon/ledger/openings.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

absl::Status check_resume(const State& state, const Session& session, const ResumeSession& event) {
  const std::string asked = absl::StrCat("resume of session ", session.name);
  if (session.layout.name_space != event.layout.name_space) {
    return make_error(ErrorCode::kLayoutRejected, asked, "it was computed with another layout",
                      "resume it with the layout that computed it");
  }
  const auto engine = state.engines.find(session.engine);
  const bool alive = engine != state.engines.end() && engine->second.state != EngineState::kDead;
  if (alive && event.steal == ResumeSession::Steal::kNo) {
    return make_error(
        ErrorCode::kBusy, asked,
        absl::StrCat("engine ", session.engine.value, " (",
                     std::string(engine_state_name(engine->second.state)), ") holds it"),
        "wait until that engine is gone, or steal it");
  }
  if (session.engine == event.origin.engine) {
    return make_error(ErrorCode::kBusy, asked, "this engine holds it already", "just go on");
  }
  return absl::OkStatus();
}

// What a living engine could still write is nobody's until that engine is gone.
void take_from(Context& context, Session& session) {
  const EngineId old = session.engine;
  steal_unsealed(context, session, old);
  let_go(context, session, {});
  notify(context, old, session.id, LostNotice{0});
}

void share_mapped(Context& context, const Session& session) {
  for (const View& view : session.pages) {
    if (!is_mapped(view.state)) continue;
    Content& content = *context.state.contents.at(view.content);
    tell_use(context.state, content, context.now, session.id.value, UsedFrom::kDevice);
    share_slot(context, session.engine, *content.slot, ShareSlab::Access::kReadOnly);
  }
}

View forked_view(const State& state, const View& view) {
  View copy{.state = PageState::kHole, .content = view.content, .exactness = view.exactness};
  if (view.state == PageState::kDropped) copy.state = PageState::kDropped;
  if (!view.content) return copy;
  const Content& content = *state.contents.at(view.content);
  if (is_mapped(view.state) && content.slot_valid) copy.state = PageState::kMapped;
  return copy;
}

}  // namespace

void apply(Context& context, const ResumeSession& event) {
  State& state = context.state;
  const absl::StatusOr<Engine*> engine = engine_for(state, event.origin);
  absl::StatusOr<Session*> found = session_for(state, event.origin, event.session);
  absl::Status status = engine.ok() ? found.status() : engine.status();
  if (status.ok()) status = check_resume(state, **found, event);
  if (status.ok()) status = ensure_buffer(context, **engine, event.layout);
  if (!status.ok()) return refuse(context, event.origin.request, status);
  Session& session = **found;
  if (session.engine) take_from(context, session);
  cancel_timer(state, Timer::Kind::kOrphan, session.expires, session.id.value);
  session.engine = event.origin.engine;
  share_mapped(context, session);
  wake(context, session);
  count(state, "sessions_resumed_total");
  reply(context, event.origin.request, describe(state, session));
}

void apply(Context& context, const ForkSession& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = own_session(state, event.origin, event.from);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& from = **found;
  if (state.names.contains({from.tenant, event.name})) {
    refuse(context, event.origin.request,
           make_error(ErrorCode::kBusy, absl::StrCat("session name ", event.name),
                      "a session of this tenant has it", "use another name"));
    return;
  }
  PageIndex end = 0;
  while (end < from.sealed_pages && from.pages[end].state != PageState::kSealing) ++end;
  auto session = std::make_unique<Session>();
  Session& fork = *session;
  fork.id = new_id<SessionId>(state);
  fork.tenant = from.tenant;
  fork.name = session_name(state, from.tenant, event.name, fork.id);
  fork.engine = from.engine;
  fork.layout = from.layout;
  fork.mode = from.mode;
  fork.budget_pages = from.budget_pages;
  fork.priority = from.priority;
  fork.default_region = from.default_region;
  fork.policy = from.policy->clone();
  fork.tags = from.tags;
  fork.atomics = from.atomics;
  fork.step = from.step;
  fork.state_since = context.now;
  fork.opened = from.opened;
  fork.waited_until = context.now;
  fork.sealed_pages = end;
  fork.tokens.assign(from.tokens.begin(), from.tokens.begin() + end * from.layout.page_tokens);
  fork.prints.assign(from.prints.begin(), from.prints.begin() + end);
  fork.keys.assign(from.keys.begin(),
                   from.keys.begin() + std::min<ptrdiff_t>(end, std::ssize(from.keys)));
  if (from.first_approximate.value_or(end) < end) fork.first_approximate = from.first_approximate;
  fork.position = end * from.layout.page_tokens;
  state.sessions.emplace(fork.id, std::move(session));
  if (end < from.sealed_pages) fork.policy->on_truncate(end);
  for (PageIndex page = 0; page < end; ++page) {
    fork.pages.push_back(forked_view(state, from.pages[page]));
    if (from.pages[page].pinned) fork.policy->on_unpin(page);
    const bool mapped = fork.pages.back().state == PageState::kMapped;
    if (!mapped && fork.policy->resident(page)) fork.policy->on_evicted(page);
    if (fork.pages.back().content) {
      add_view(context, *state.contents.at(fork.pages.back().content), {fork.id, page});
    }
  }
  tape_fork(state, fork, from);
  fork.over_budget = fork.mode == Mode::kLossy && fork.budget_pages > 0;
  if (!is_running(from) || (fork.mode == Mode::kExact && missing_pages(fork) > 0)) {
    wake(context, fork);
  }
  reply(context, event.origin.request, describe(state, fork));
}

}  // namespace memdecay::ledger
