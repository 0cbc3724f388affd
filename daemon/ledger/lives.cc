// How sessions and leases end (see lives.h).
#include "daemon/ledger/lives.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/ledger/contents.h"
#include "daemon/ledger/grant.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/pump.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

absl::Status session_ended() {
  return make_error(ErrorCode::kUnknownSession, "a request of a session", "the session has ended",
                    "open or resume a session");
}

void end_ops(Context& context, Session& session) {
  State& state = context.state;
  std::vector<OpId> ops;
  for (const auto& [id, op] : state.ops) {
    if (op.session == session.id) ops.push_back(id);
  }
  for (const OpId id : ops) {
    RestoreOp& op = state.ops.at(id);
    for (const PageIndex page : op.pages) session.pages.at(page).op = {};
    for (const PageIndex page : op.pages)
      op.result.failed.emplace_back(page, ErrorCode::kUnavailable);
    if (op.purpose == RestoreOp::Purpose::kRestore) reply(context, op.request, op.result);
    cancel_timer(state, Timer::Kind::kOp, op.due, id.value);
    state.ops.erase(id);
  }
  session.wake = {};
  std::erase_if(state.waiters, [&session](const Waiter& waiter) {
    return waiter.session == session.id && waiter.kind == Waiter::Kind::kOp;
  });
  refuse_extends(context, session, session_ended());
}

}  // namespace

void unpin_page(State& state, Session& session, PageIndex page) {
  View& view = session.pages.at(page);
  if (!view.pinned) return;
  view.pinned = false;
  tape_unpin(state, session, page);
  cancel_timer(state, Timer::Kind::kPin, view.pin_until, session.id.value, page);
  --state.tenants.at(session.tenant).pins;
  if (page < session.sealed_pages) session.policy->on_unpin(page);
}

void let_go(Context& context, Session& session, const Fence& fence) {
  State& state = context.state;
  end_ops(context, session);
  for (PageIndex page = 0; page < session.pages.size(); ++page) {
    if (!session.pages[page].pin_until.has_value()) unpin_page(state, session, page);
  }
  PageIndex first_open = 0;
  while (first_open < session.pages.size() && !is_unsealed(session.pages[first_open].state) &&
         session.pages[first_open].state != PageState::kSealing) {
    ++first_open;
  }
  const EngineId engine = session.engine;
  for (View& view : session.pages) set_late(state, session, view, Late::kNo);
  remove_pages(context, session, first_open, engine, fence);
  session.engine = {};
  session.ready = false;
  for (PageIndex page = 0; page < session.pages.size(); ++page) {
    const ViewRef ref{session.id, page};
    const PageState page_state = session.pages[page].state;
    if (page_state == PageState::kAsked) give_up(context, ref, engine, fence);
    if (page_state == PageState::kRestoring && session.pages[page].announced) {
      page_resident(context, ref);
    }
    if (page_state != PageState::kMapped) continue;
    Content& content = *state.contents.at(session.pages[page].content);
    if (watch(context, engine, fence, {FenceWatch::Why::kRead, {}, content.id, {}})) {
      ++content.open_fences;
    }
  }
}

void start_ttl(Context& context, Session& session) {
  State& state = context.state;
  session.expires =
      set_timer(context, Timer::Kind::kOrphan, state.options.orphan_ttl, session.id.value);
  size_t kept = 0;
  Session* oldest = nullptr;
  for (auto& [id, other] : state.sessions) {
    if (!other->expires.has_value() || other->tenant != session.tenant) continue;
    ++kept;
    if (oldest == nullptr || *other->expires < *oldest->expires) oldest = other.get();
  }
  if (kept > state.options.orphan_limit && oldest != nullptr) {
    count(state, "orphans_dropped_total");
    erase_session(context, *oldest, CloseSession::What::kKeep);
  }
}

void orphan(Context& context, Session& session) {
  let_go(context, session, {});
  enter_state(context, session, SessionState::kOrphaned);
  refresh_session(context, session, Touch::kYes);
  start_ttl(context, session);
}

void erase_session(Context& context, Session& session, CloseSession::What what) {
  State& state = context.state;
  const SessionId id = session.id;
  tape_end(state, session);
  cancel_timer(state, Timer::Kind::kOrphan, session.expires, id.value);
  std::vector<ContentId> contents;
  for (const View& view : session.pages) {
    if (view.content) contents.push_back(view.content);
  }
  remove_pages(context, session, 0, {}, {});
  state.names.erase({session.tenant, session.name});
  state.sessions.erase(id);
  if (what == CloseSession::What::kKeep) return;
  for (const ContentId content_id : contents) {
    Content* content = find_content(state, content_id);
    if (content != nullptr && content->views.empty() && content->leases == 0) {
      discard(context, *content);
    }
  }
}

void end_lease(Context& context, LeaseId id) {
  State& state = context.state;
  const auto found = state.leases.find(id);
  if (found == state.leases.end()) return;
  std::optional<Instant> due = found->second.expires;
  cancel_timer(state, Timer::Kind::kLease, due, id.value);
  const Lease lease = std::move(found->second);
  state.leases.erase(found);
  for (const ContentId content_id : lease.contents) {
    Content* content = find_content(state, content_id);
    if (content == nullptr) continue;
    --content->leases;
    refresh_ranks(state, *content);
  }
}

void watches_to_slot(State& state, ViewRef view, const SlotRef& slot) {
  for (auto& [fence, watches] : state.fences) {
    for (FenceWatch& watch : watches) {
      if (watch.why == FenceWatch::Why::kSeal && watch.view == view) {
        watch = {FenceWatch::Why::kSlot, {}, {}, slot};
      }
    }
  }
}

void watches_to_slot(State& state, ContentId content, const SlotRef& slot) {
  for (auto& [fence, watches] : state.fences) {
    for (FenceWatch& watch : watches) {
      const bool reads =
          watch.why == FenceWatch::Why::kRead || watch.why == FenceWatch::Why::kGiveUp;
      if (reads && watch.content == content) {
        watch = {FenceWatch::Why::kSlot, {}, {}, slot};
      }
    }
  }
}

void watches_to_content(State& state, ViewRef view) {
  for (auto& [fence, watches] : state.fences) {
    for (FenceWatch& watch : watches) {
      if (watch.why == FenceWatch::Why::kGiveUp && watch.view == view) {
        watch.why = FenceWatch::Why::kRead;
        watch.view = {};
      }
    }
  }
}

}  // namespace memdecay::ledger
