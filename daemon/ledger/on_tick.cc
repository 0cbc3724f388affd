// Time passes: late answers, overdue requests and copies, leases, pins, sessions without engine
// (see apply.h). Every timer names what it is about; what has changed meanwhile is left alone.
#include "absl/strings/str_cat.h"
#include "daemon/ledger/apply.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/copies.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/lives.h"
#include "daemon/ledger/lookups.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/pump.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/slots.h"

namespace memdecay::ledger {
namespace {

void ask_overdue(State& state, const Timer& timer) {
  Session* session = find_session(state, SessionId{timer.id});
  if (session == nullptr || timer.page >= session->pages.size()) return;
  View& view = session->pages[timer.page];
  const bool waits = view.state == PageState::kAsked || view.state == PageState::kGivenUp;
  if (waits && view.ask_due == timer.when) {
    set_late(state, *session, view, Late::kYes);
  }
}

// The write into a lower tier is given up: a cached entry is forgotten, a session's page stays.
void copy_overdue(Context& context, CopyId id) {
  State& state = context.state;
  const auto found = state.copies.find(id);
  if (found == state.copies.end() || found->second.abandoned) return;
  const CopyKind kind = found->second.what.kind;
  Content& content = *state.contents.at(found->second.what.content);
  abandon_copy(context, content);
  count(state, "pending_expired_total");
  const absl::Status status = make_error(ErrorCode::kDeadline, "a copy", "it did not end in time");
  switch (kind) {
    case CopyKind::kEvict:
      evict_copied(context, content, status);
      break;
    case CopyKind::kStore:
      store_copied(context, content, status);
      break;
    case CopyKind::kVerify:
      refresh_ranks(state, content);
      verified(context, id, status);
      break;
    case CopyKind::kRestore:
      break;  // its op has the deadline
  }
}

void copy_lost(Context& context, CopyId id) {
  State& state = context.state;
  const auto found = state.copies.find(id);
  if (found == state.copies.end() || !found->second.abandoned) return;
  const SlotRef target = found->second.what.slot;
  state.copies.erase(found);
  count(state, "copies_lost_total");
  Slot* slot = find_slot(state, target);
  if (slot == nullptr || slot->copy != id) return;
  slot->copy = {};
  settle_quarantine(context, target);
}

void fire(Context& context, const Timer& timer) {
  State& state = context.state;
  switch (timer.kind) {
    case Timer::Kind::kWaiter:
      waiter_overdue(context, RequestId{timer.id});
      return;
    case Timer::Kind::kAsk:
      ask_overdue(state, timer);
      return;
    case Timer::Kind::kOp:
      abandon_op(context, OpId{timer.id}, ErrorCode::kDeadline);
      return;
    case Timer::Kind::kCopy:
      copy_overdue(context, CopyId{timer.id});
      return;
    case Timer::Kind::kCopyLost:
      copy_lost(context, CopyId{timer.id});
      return;
    case Timer::Kind::kLease:
      end_lease(context, LeaseId{timer.id});
      return;
    case Timer::Kind::kPin: {
      Session* session = find_session(state, SessionId{timer.id});
      if (session == nullptr || timer.page >= session->pages.size()) return;
      if (session->pages[timer.page].pin_until == timer.when) {
        unpin_page(state, *session, timer.page);
      }
      return;
    }
    case Timer::Kind::kStoreAgain: {
      Content* content = find_content(state, ContentId{timer.id});
      if (content == nullptr) return;
      content->store_failed = false;
      refresh_ranks(state, *content);
      return;
    }
    case Timer::Kind::kOrphan: {
      Session* session = find_session(state, SessionId{timer.id});
      if (session == nullptr || session->expires != timer.when) return;
      count(state, "sessions_expired_total");
      erase_session(context, *session, CloseSession::What::kKeep);
      return;
    }
  }
}

}  // namespace

void apply(Context& context, const Tick&) {
  auto& timers = context.state.timers;
  while (!timers.empty() && timers.begin()->when <= context.now) {
    const Timer timer = *timers.begin();
    timers.erase(timers.begin());
    fire(context, timer);
  }
}

}  // namespace memdecay::ledger
