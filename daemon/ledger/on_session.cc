// Sessions: opened, closed, parked, given a budget or a mode, repaired (see apply.h). Resuming and
// forking are in on_resume.cc.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/apply.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/lives.h"
#include "daemon/ledger/openings.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/pump.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

absl::Status check_open(const State& state, const OpenSession& event) {
  if (state.draining) {
    return make_error(ErrorCode::kUnavailable, "open", "the daemon is shutting down",
                      "open on its successor");
  }
  if (state.names.contains({event.origin.tenant, event.name})) {
    return make_error(ErrorCode::kBusy, absl::StrCat("session name ", event.name),
                      "a session of this tenant has it", "resume that one, or use another name");
  }
  if (event.mode == Mode::kLossy && state.options.lossy_allowed == Options::LossyAllowed::kNo) {
    return make_error(ErrorCode::kPermission, "mode lossy", "this tenant's sessions are exact",
                      "open it exact, or allow lossy in the configuration");
  }
  return check_layout(state, event.layout);
}

absl::Status check_budget(const State& state, const Session& session, uint32_t budget) {
  if (budget == 0) return absl::OkStatus();
  const uint32_t smallest = smallest_budget(state, session);
  if (budget < smallest) {
    return make_error(
        ErrorCode::kBudgetTooSmall, absl::StrCat("a budget of ", budget, " pages"),
        absl::StrCat("sinks, recent pages, pins and one page being written are ", smallest),
        "ask for at least that, or unpin pages");
  }
  if (session.mode == Mode::kExact && budget < session.pages.size()) {
    return make_error(
        ErrorCode::kBudgetTooSmall, absl::StrCat("a budget of ", budget, " pages"),
        absl::StrCat("an exact session needs all its ", session.pages.size(), " pages to compute"),
        "truncate it, make it lossy, or ask for more");
  }
  return absl::OkStatus();
}

// The daemon's options, above them the tenant's, above them the session's.
absl::StatusOr<std::unique_ptr<policy::Policy>> policy_of(const State& state,
                                                          const OpenSession& event) {
  std::vector<policy::OptionWord> words = event.policy_options;
  if (!event.policy.empty()) words.insert(words.begin(), {"name", event.policy});
  const absl::StatusOr<policy::PolicyOptions> options =
      policy::layered(policy_options(state, event.origin.tenant), words, state.options.presets);
  if (!options.ok()) return options.status();
  return policy::make_policy(*options);
}

// Who may change a session: its engine, or an orchestrator or operator of the tenant.
absl::StatusOr<Session*> may_steer(State& state, const Origin& origin, SessionId id) {
  absl::StatusOr<Session*> session = session_for(state, origin, id);
  if (!origin.engine || !session.ok() || !(*session)->engine) return session;
  return own_session(state, origin, id);
}

}  // namespace

absl::Status check_layout(const State& state, const LayoutRef& layout) {
  if (layout.page_tokens != state.options.page_tokens) {
    return make_error(ErrorCode::kLayoutRejected, absl::StrCat("page_tokens ", layout.page_tokens),
                      absl::StrCat("this daemon has pages of ", state.options.page_tokens),
                      "use the daemon's page_tokens");
  }
  if (layout.page_bytes == 0) {
    return make_error(ErrorCode::kLayoutRejected, "page_bytes 0", {}, "give the size of a page");
  }
  return absl::OkStatus();
}

absl::Status ensure_buffer(Context& context, Engine& engine, const LayoutRef& layout) {
  if (engine.placement == Placement::kDaemon) return absl::OkStatus();
  if (const Slab* buffer = find_slab(context.state, engine.buffer)) {
    if (buffer->name_space == layout.name_space) return absl::OkStatus();
    return make_error(ErrorCode::kLayoutRejected, "a second layout",
                      "the engine's buffer has another one", "use one engine a layout");
  }
  const uint32_t blocks = engine.blocks > 0 ? engine.blocks : context.state.options.device_pages;
  absl::StatusOr<SlabId> buffer = make_buffer(context, engine, layout, blocks);
  if (!buffer.ok()) return buffer.status();
  engine.buffer = *buffer;
  return absl::OkStatus();
}

SessionReply describe(const State& state, const Session& session) {
  SessionReply reply{.session = session.id,
                     .name = session.name,
                     .position = session.sealed_pages * session.layout.page_tokens,
                     .tokens = session.tokens,
                     .ready = session.ready ? SessionReply::Ready::kYes : SessionReply::Ready::kNo,
                     .step = session.step,
                     .mode = session.mode};
  for (size_t i = 0; i < session.tags.size(); ++i) {
    const uint32_t end = i + 1 < session.tags.size() ? session.tags[i + 1].first : UINT32_MAX;
    reply.regions.push_back({session.tags[i].first, end, session.tags[i].second});
  }
  for (PageIndex page = 0; page < session.pages.size(); ++page) {
    reply.pages.push_back(page_view(state, session, page));
  }
  return reply;
}

std::string session_name(State& state, TenantId tenant, const std::string& wanted, SessionId id) {
  std::string name = wanted.empty() ? absl::StrCat("session-", id.value) : wanted;
  state.names.emplace(std::make_pair(tenant, name), id);
  return name;
}

void apply(Context& context, const OpenSession& event) {
  State& state = context.state;
  const absl::StatusOr<Engine*> engine = engine_for(state, event.origin);
  absl::Status status = engine.status();
  if (status.ok()) status = check_open(state, event);
  if (status.ok()) status = ensure_buffer(context, **engine, event.layout);
  absl::StatusOr<std::unique_ptr<policy::Policy>> policy = policy_of(state, event);
  if (status.ok()) status = policy.status();
  if (status.ok()) status = check_region(**policy, event.default_region);
  auto session = std::make_unique<Session>();
  session->mode = event.mode;
  if (status.ok()) status = check_budget(state, *session, event.budget_pages);
  if (!status.ok()) return refuse(context, event.origin.request, status);
  session->id = new_id<SessionId>(state);
  session->tenant = event.origin.tenant;
  session->name = session_name(state, session->tenant, event.name, session->id);
  session->engine = event.origin.engine;
  session->layout = event.layout;
  session->budget_pages = event.budget_pages;
  session->priority = event.priority;
  session->default_region = event.default_region;
  session->policy = *std::move(policy);
  session->state_since = context.now;
  session->opened = context.now;
  session->waited_until = context.now;
  state.tells_time |= session->policy->counts_seconds();
  const Session& opened = *session;
  state.sessions.emplace(opened.id, std::move(session));
  tape_open(state, opened);
  reply(context, event.origin.request, describe(state, opened));
}

void apply(Context& context, const CloseSession& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = may_steer(state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  const Engine* engine = find_engine(state, session.engine);
  const bool returns_blocks = engine != nullptr && engine->placement == Placement::kEngine;
  if (session.engine) let_go(context, session, event.fence);
  if (event.what == CloseSession::What::kForget) {
    erase_session(context, session, event.what);
    return reply(context, event.origin.request);
  }
  enter_state(context, session, SessionState::kEnded);
  refresh_session(context, session, Touch::kYes);
  if (returns_blocks) {  // its buffer's blocks are the engine's to use again
    std::vector<Victim> victims;
    for (PageIndex page = 0; page < session.pages.size(); ++page) {
      if (session.pages[page].state != PageState::kMapped) continue;
      victims.push_back({.content = session.pages[page].content,
                         .by = ViewRef{session.id, page},
                         .reason = Reason::kSessionIdle});
    }
    begin_leaving(context, victims, "its session has ended", {});
  }
  start_ttl(context, session);
  reply(context, event.origin.request);
}

void apply(Context& context, const SetBudget& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = may_steer(state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  const absl::Status status = check_budget(state, session, event.budget_pages);
  if (!status.ok()) return refuse(context, event.origin.request, status);
  session.budget_pages = event.budget_pages;
  session.over_budget = session.mode == Mode::kLossy && event.budget_pages > 0;
  if (!event.origin.engine) {
    notify(context, session.engine, session.id, BudgetNotice{event.budget_pages});
  }
  reply(context, event.origin.request);
}

void apply(Context& context, const SetMode& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = may_steer(state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  absl::Status status;
  const auto dropped = first_dropped(session);
  if (event.mode == Mode::kLossy && state.options.lossy_allowed == Options::LossyAllowed::kNo) {
    status = make_error(ErrorCode::kPermission, "mode lossy", "this tenant's sessions are exact",
                        "allow lossy in the configuration");
  } else if (event.mode == Mode::kExact && dropped.has_value()) {
    status = make_error(ErrorCode::kNotFound, absl::StrCat("page ", *dropped),
                        "its bytes are gone, so the session cannot be exact",
                        "truncate to it and compute again, then change the mode");
  } else if (event.mode == Mode::kExact && session.budget_pages > 0 &&
             session.budget_pages < session.pages.size()) {
    status = make_error(
        ErrorCode::kBudgetTooSmall,
        absl::StrCat("mode exact with a budget of ", session.budget_pages, " pages"),
        absl::StrCat("the session has ", session.pages.size(), " pages"), "raise the budget first");
  }
  if (!status.ok()) return refuse(context, event.origin.request, status);
  session.mode = event.mode;
  if (!event.origin.engine) {
    notify(context, session.engine, session.id, ModeNotice{event.mode});
  }
  const bool lacks = missing_pages(session) > 0 || loses_pages(session);
  if (event.mode == Mode::kExact && is_running(session) && lacks && !session.wake) {
    wake(context, session);
  }
  reply(context, event.origin.request);
}

void apply(Context& context, const Park& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = own_session(state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  if (event.state == SessionState::kDecoding || event.state == SessionState::kOrphaned ||
      event.state == SessionState::kEnded) {
    refuse(context, event.origin.request,
           make_error(ErrorCode::kInvalidArgument, "park", "that is no state to wait in",
                      "use waiting_tool, waiting_user or preempted"));
    return;
  }
  if (session.wake) abandon_op(context, session.wake, ErrorCode::kOk);
  refuse_extends(context, session,
                 make_error(ErrorCode::kBusy, "extend", "the session was parked meanwhile",
                            "unpark it and ask again"));
  enter_state(context, session, event.state);
  session.ready = false;
  session.parked = true;
  refresh_session(context, session, Touch::kYes);
  reply(context, event.origin.request);
}

void apply(Context& context, const Unpark& event) {
  const absl::StatusOr<Session*> found = own_session(context.state, event.origin, event.session);
  answer(context, event.origin.request, found.status());
  if (!found.ok()) return;
  Session& session = **found;
  if (session.wake) return;  // on its way already
  if (session.ready && is_running(session)) {
    notify(context, session.engine, session.id, ReadyNotice{});
    return;
  }
  wake(context, session);
}

void apply(Context& context, const Repair& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = may_steer(state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  const PageIndex end = session.sealed_pages;
  const PageIndex first =
      std::min(session.first_approximate.value_or(end), first_dropped(session).value_or(end));
  RepairReply answer{.first_page = first};
  const uint32_t keep = first * session.layout.page_tokens;
  if (first < end || session.tail_tainted) {
    answer.needed = RepairReply::Needed::kYes;
    answer.tokens = session.position > keep ? session.position - keep : 0;
  }
  std::vector<PageIndex> missing;
  for (PageIndex page = 0; page < first; ++page) {
    const PageState page_state = session.pages[page].state;
    if (page_state == PageState::kHole || page_state == PageState::kGivenUp)
      missing.push_back(page);
  }
  if (!missing.empty()) {
    begin_op(context, session, RestoreOp::Purpose::kRestore, {}, missing, {});
  }
  reply(context, event.origin.request, answer);
}

}  // namespace memdecay::ledger
