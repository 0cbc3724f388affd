// How pages come back (see restore.h).
#include "daemon/ledger/restore.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/copies.h"
#include "daemon/ledger/decisions.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/regret.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/check.h"

namespace memdecay::ledger {
namespace {

void count_outcome(State& state, std::string_view outcome) {
  std::string labels("source=host|outcome=");
  count(state, "restores_total", labels.append(outcome));
}

void drop_waiter(State& state, OpId op) {
  std::erase_if(state.waiters, [op](const Waiter& waiter) { return waiter.op == op; });
}

// The pages that a session needs before it computes.
std::vector<PageIndex> wanted_pages(const Session& session) {
  const PageIndex end = session.mode == Mode::kExact
                            ? first_dropped(session).value_or(session.sealed_pages)
                            : session.sealed_pages;
  std::vector<PageIndex> pages;
  for (PageIndex page = 0; page < end; ++page) {
    const View& view = session.pages[page];
    if (view.state == PageState::kMapped || view.state == PageState::kDropped ||
        view.state == PageState::kSealing) {
      continue;
    }
    if (session.mode == Mode::kExact || view.left_idle) pages.push_back(page);
  }
  return pages;
}

// Nothing came back: the first page's error speaks for all.
void answer_restore(Context& context, const RestoreOp& op) {
  if (op.result.resident > 0 || op.result.failed.empty()) {
    reply(context, op.request, op.result);
    return;
  }
  const auto& [page, code] = op.result.failed.front();
  refuse(context, op.request,
         make_error(code, absl::StrCat("restore of ", op.result.failed.size(), " pages"),
                    absl::StrCat("none came back; page ", page, " first"),
                    "try again, or compute the pages again"));
}

void finish_if_done(Context& context, OpId id) {
  State& state = context.state;
  const auto found = state.ops.find(id);
  if (found == state.ops.end() || !found->second.pages.empty()) return;
  RestoreOp op = std::move(found->second);
  cancel_timer(state, Timer::Kind::kOp, op.due, id.value);
  state.ops.erase(found);
  drop_waiter(state, id);
  if (op.purpose == RestoreOp::Purpose::kRestore) answer_restore(context, op);
  Session* session = find_session(state, op.session);
  if (session == nullptr) return;
  if (session->wake == id) session->wake = {};
  const bool wakes = op.purpose != RestoreOp::Purpose::kRestore && op.result.failed.empty();
  if (wakes && !session->parked && !session->ready && session->engine && !session->wake &&
      session->mode == Mode::kExact && !wanted_pages(*session).empty()) {
    wake(context, *session);  // more went missing, or is needed, than when it began
    return;
  }
  settle_ready(context, *session);
}

// The bytes are in the slot: the engine hears of it, or nobody has to.
void announce(Context& context, ViewRef ref) {
  State& state = context.state;
  Session& session = *state.sessions.at(ref.session);
  View& view = session.pages.at(ref.page);
  if (!must_ask(state, session)) {
    page_resident(context, ref);
    return;
  }
  const Content& content = *state.contents.at(view.content);
  share_slot(context, session.engine, *content.slot, ShareSlab::Access::kReadOnly);
  view.announced = true;
  notify(context, session.engine, session.id, RestoreNotice{{page_view(state, session, ref.page)}});
}

// Where a page of the op is copied to; nullopt: no place after all.
std::optional<SlotRef> target(Context& context, const Session& session, RestoreOp& op) {
  const Engine* engine = find_engine(context.state, session.engine);
  if (engine == nullptr || engine->placement == Placement::kDaemon) {
    return take_slot(context, {session.tenant, session.layout.name_space},
                     session.layout.page_bytes, {});
  }
  std::optional<uint32_t> block = free_block(context.state, *engine);
  if (!op.blocks.empty()) {
    block = op.blocks.front();
    op.blocks.erase(op.blocks.begin());
  }
  return block.has_value() ? take_block(context, *engine, *block) : std::nullopt;
}

// One page of an admitted op: maps what is there, joins a copy under way, or starts one.
void bring_back(Context& context, RestoreOp& op, PageIndex page) {
  State& state = context.state;
  Session& session = *state.sessions.at(op.session);
  const ViewRef ref{op.session, page};
  View& view = session.pages.at(page);
  Content& content = *state.contents.at(view.content);
  set_page_state(state, ref, PageState::kRestoring);
  view.op = op.id;
  if (content.slot_valid) {
    stay(context, content);
    announce(context, ref);
    return;
  }
  if (content.slot.has_value()) {  // another session's restore is copying it in
    refresh_ranks(state, content);
    return;
  }
  const std::optional<SlotRef> slot = target(context, session, op);
  if (!slot.has_value()) {
    view.op = {};
    set_page_state(state, ref, PageState::kHole);
    op_page_failed(context, op.id, page, ErrorCode::kResourceExhausted);
    return;
  }
  content.slot = slot;
  find_slot(state, *slot)->content = content.id;
  set_slot_state(context, *slot, SlotState::kCopyingIn);
  start_copy(context, content, CopyKind::kRestore, op.id);
}

// Takes one page out of an op that is given up.
void call_off(Context& context, ViewRef ref) {
  State& state = context.state;
  Session& session = *state.sessions.at(ref.session);
  View& view = session.pages.at(ref.page);
  if (view.state != PageState::kRestoring) return;
  view.op = {};
  Content& content = *state.contents.at(view.content);
  if (view.announced) {  // the engine may have mapped it: it is asked back
    set_page_state(state, ref, PageState::kAsked);
    view.ask_due =
        set_timer(context, Timer::Kind::kAsk, state.options.ack_late, ref.session.value, ref.page);
    view.decision = record(context, "withdraw", ref, Reason::kAdmin);
    if (mapping_views(state, content) <= 1) {
      content.leaving = true;
      state.leaving.insert(content.id);
    }
    notify(context, session.engine, session.id,
           EvictNotice{view.decision, {{ref.page, Reason::kAdmin}}});
    return;
  }
  set_page_state(state, ref, PageState::kHole);
  unwanted(context, content);
}

}  // namespace

void unwanted(Context& context, Content& content) {
  if (mapping_views(context.state, content) > 0) return;
  if (has_copy(context.state, content, CopyKind::kRestore)) abandon_copy(context, content);
}

void withdraw(Context& context, const Session& session, PageIndex page) {
  notify(context, session.engine, session.id,
         WithdrawNotice{session.pages.at(page).decision, {page}});
}

void widen_wake(Context& context, RestoreOp& op) {
  const Session& session = *context.state.sessions.at(op.session);
  if (op.purpose == RestoreOp::Purpose::kRestore || session.mode == Mode::kLossy) return;
  for (const PageIndex page : wanted_pages(session)) {
    if (!op.pages.insert(page).second) continue;
    if (session.pages[page].state == PageState::kAsked) withdraw(context, session, page);
  }
}

void give_way(Context& context, OpId id) {
  RestoreOp& op = context.state.ops.at(id);
  const Session& session = *context.state.sessions.at(op.session);
  const uint32_t held = occupancy(session);
  size_t room = session.budget_pages > held ? session.budget_pages - held : 0;
  std::vector<PageIndex> pages(op.pages.begin(), op.pages.end());
  std::stable_sort(pages.begin(), pages.end(), [&session](PageIndex a, PageIndex b) {
    return session.policy->score(a) > session.policy->score(b);
  });
  for (const PageIndex page : pages) {
    if (room > 0) {
      --room;
    } else {
      op.pages.erase(page);
    }
  }
  finish_if_done(context, id);
}

OpId begin_op(Context& context, Session& session, RestoreOp::Purpose purpose, RequestId request,
              const std::vector<PageIndex>& pages, const std::vector<uint32_t>& blocks) {
  State& state = context.state;
  RestoreOp op{.id = new_id<OpId>(state),
               .purpose = purpose,
               .request = request,
               .session = session.id,
               .blocks = blocks};
  const OpId id = op.id;
  for (const PageIndex page : pages) {
    const View& view = session.pages.at(page);
    if (view.state == PageState::kMapped) {
      ++op.result.resident;
      continue;
    }
    if (view.state == PageState::kDropped) {
      op.result.failed.emplace_back(page, ErrorCode::kNotFound);
      continue;
    }
    if (view.state == PageState::kAsked) withdraw(context, session, page);
    if (view.state != PageState::kAsked) note_wanted(context, {session.id, page});
    op.pages.insert(page);
  }
  if (purpose == RestoreOp::Purpose::kRestore) {
    op.due = set_timer(context, Timer::Kind::kOp, state.options.restore, id.value);
  }
  state.ops.emplace(id, std::move(op));
  state.waiters.push_back(
      Waiter{.kind = Waiter::Kind::kOp, .tenant = session.tenant, .session = session.id, .op = id});
  finish_if_done(context, id);
  return id;
}

void wake(Context& context, Session& session) {
  session.ready = false;
  session.parked = false;
  enter_state(context, session, SessionState::kPreempted);
  const std::vector<PageIndex> pages = wanted_pages(session);
  if (!pages.empty()) {
    session.wake = begin_op(context, session, RestoreOp::Purpose::kWake, {}, pages, {});
    return;
  }
  settle_ready(context, session);
}

void settle_ready(Context& context, Session& session) {
  const bool wants =
      session.state == SessionState::kPreempted || session.state == SessionState::kDecoding;
  if (session.ready || session.parked || !wants || session.wake || !session.engine) return;
  if (session.mode == Mode::kExact && (missing_pages(session) > 0 || loses_pages(session))) return;
  session.ready = true;
  if (session.state != SessionState::kDecoding) {
    enter_state(context, session, SessionState::kDecoding);
    refresh_session(context, session, Touch::kYes);
  }
  notify(context, session.engine, session.id, ReadyNotice{});
}

std::optional<uint32_t> op_need(const State& state, const RestoreOp& op) {
  const Session& session = *state.sessions.at(op.session);
  uint32_t need = 0;
  for (const PageIndex page : op.pages) {
    const View& view = session.pages.at(page);
    if (view.state != PageState::kHole) return std::nullopt;
    const Content& content = *state.contents.at(view.content);
    if (has_copy(state, content, CopyKind::kEvict)) return std::nullopt;
    need += !content.slot.has_value();
  }
  return need;
}

void admit_op(Context& context, RestoreOp& op) {
  State& state = context.state;
  Session& session = *state.sessions.at(op.session);
  op.admitted = true;
  if (op.purpose != RestoreOp::Purpose::kRestore) {
    op.due = set_timer(context, Timer::Kind::kOp, state.options.restore, op.id.value);
  }
  if (op.purpose == RestoreOp::Purpose::kWake && session.state == SessionState::kPreempted) {
    enter_state(context, session, SessionState::kDecoding);
    refresh_session(context, session, Touch::kYes);
  }
  const OpId id = op.id;
  const auto pages = op.pages;
  for (const PageIndex page : pages) {
    const auto found = state.ops.find(id);
    if (found == state.ops.end()) return;
    bring_back(context, found->second, page);
  }
}

void page_resident(Context& context, ViewRef ref) {
  State& state = context.state;
  Session& session = *state.sessions.at(ref.session);
  View& view = session.pages.at(ref.page);
  view.op = {};
  note_wanted(context, ref);
  view.left_idle = false;
  set_page_state(state, ref, PageState::kMapped);
  refresh_ranks(state, *state.contents.at(view.content));
  record(context, "restore", ref, Reason::kAdmin);
  count_outcome(state, "ok");
  for (const OpId op : ops_with(state, ref)) op_page_there(context, op, ref.page);
}

std::vector<OpId> ops_with(const State& state, ViewRef ref) {
  std::vector<OpId> ops;
  for (const auto& [id, op] : state.ops) {
    if (op.session == ref.session && op.pages.contains(ref.page)) ops.push_back(id);
  }
  return ops;
}

void op_page_there(Context& context, OpId id, PageIndex page) {
  RestoreOp& op = context.state.ops.at(id);
  op.pages.erase(page);
  ++op.result.resident;
  finish_if_done(context, id);
}

void op_page_failed(Context& context, OpId id, PageIndex page, ErrorCode code) {
  State& state = context.state;
  const auto found = state.ops.find(id);
  if (found == state.ops.end() || found->second.pages.erase(page) == 0) return;
  RestoreOp& op = found->second;
  op.result.failed.emplace_back(page, code);
  count_outcome(state, "failed");
  const Session& session = *state.sessions.at(op.session);
  notify(context, session.engine, session.id, FailedNotice{page, code});
  finish_if_done(context, id);
}

void restore_copied(Context& context, Content& content, const absl::Status& status) {
  State& state = context.state;
  const SlotRef slot = *content.slot;
  const auto views = content.views;
  if (status.ok()) {
    content.slot_valid = true;
    content.verified = true;
    tell_use(state, content, context.now, content.sealed_by.value, UsedFrom::kHost);
    set_slot_state(context, slot, SlotState::kValid);
    for (const ViewRef& ref : views) {
      const View& view = view_of(state, ref);
      if (view.state == PageState::kRestoring && !view.announced) announce(context, ref);
    }
    refresh_ranks(state, content);
    return;
  }
  content.slot.reset();
  free_slot(context, slot);
  if (error_code(status) == ErrorCode::kDataLoss) {
    count(state, "checksum_failures_total", "tier=host");
    drop_host_replica(context, content);
    lose(context, content);
    return;
  }
  for (const ViewRef& ref : views) {
    View& view = view_of(state, ref);
    if (view.state != PageState::kRestoring) continue;
    const OpId op = std::exchange(view.op, OpId{});
    set_page_state(state, ref, PageState::kHole);
    op_page_failed(context, op, ref.page, error_code(status));
  }
  refresh_ranks(state, content);
}

void abandon_op(Context& context, OpId id, ErrorCode code) {
  State& state = context.state;
  const auto found = state.ops.find(id);
  if (found == state.ops.end()) return;
  const SessionId session = found->second.session;
  const auto pages = found->second.pages;
  for (const PageIndex page : pages) {
    call_off(context, {session, page});
    if (code != ErrorCode::kOk) {
      op_page_failed(context, id, page, code);
      continue;
    }
    count_outcome(state, "cancelled");
    RestoreOp& op = state.ops.at(id);
    op.pages.erase(page);
    op.result.failed.emplace_back(page, ErrorCode::kUnavailable);
  }
  finish_if_done(context, id);
}

}  // namespace memdecay::ledger
