// Cutting pages off a session's end (see grant.h): whatever state each is in, its slot is freed as
// soon as nothing reads or writes it any more, and its content stays only if somebody can find it.
#include <algorithm>

#include "daemon/ledger/contents.h"
#include "daemon/ledger/grant.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/lives.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

// No token stands behind the sealed pages any more: there is nothing to be tainted.
void forget_taint(Session& session) {
  const uint32_t sealed = session.sealed_pages * session.layout.page_tokens;
  if (session.position <= sealed || missing_pages(session) == 0) session.tail_tainted = false;
}

// Slots that the engine could still be writing are not re-used before its fence.
void remove_grant(Context& context, const SlotRef& slot, EngineId engine, const Fence& fence) {
  if (watch(context, engine, fence, {FenceWatch::Why::kSlot, {}, {}, slot})) {
    quarantine_slot(context, slot, {}, {}, 1);
  } else {
    free_slot(context, slot);
  }
}

// A seal whose fence has not passed never happened.
void remove_sealing(Context& context, ViewRef ref, Content& content) {
  const SlotRef slot = *content.slot;
  content.slot.reset();
  quarantine_slot(context, slot, {}, {}, 1);
  watches_to_slot(context.state, ref, slot);
}

void leave_ops(Context& context, Session& session, PageIndex page) {
  session.pages[page].op = {};
  for (auto& [id, op] : context.state.ops) {
    if (op.session != session.id || op.pages.erase(page) == 0) continue;
    op.result.failed.emplace_back(page, ErrorCode::kUnknownPage);
  }
}

void remove_sealed(Context& context, Session& session, PageIndex page, EngineId reader,
                   const Fence& fence, Entries keep) {
  State& state = context.state;
  const ViewRef ref{session.id, page};
  const View view = session.pages[page];
  Content& content = *state.contents.at(view.content);
  if (view.state == PageState::kSealing) remove_sealing(context, ref, content);
  if (view.state == PageState::kGivenUp && view.fences > 0) watches_to_content(state, ref);
  if (is_mapped(view.state) &&
      watch(context, reader, fence, {FenceWatch::Why::kRead, {}, content.id, {}})) {
    ++content.open_fences;
  }
  const ContentId id = content.id;
  session.pages[page].content = {};
  remove_view(context, content, ref);
  Content* left = find_content(state, id);
  if (left == nullptr) return;
  if (keep == Entries::kDropOwn && left->sealed_by == session.id && left->views.empty() &&
      left->leases == 0) {
    discard(context, *left);
    return;
  }
  if (view.state == PageState::kRestoring) unwanted(context, *left);
  progress_leaving(context, *left);
}

// Ops that lost their last page end.
void finish_ops(Context& context, SessionId session) {
  std::vector<OpId> done;
  for (const auto& [id, op] : context.state.ops) {
    if (op.session == session && op.pages.empty()) done.push_back(id);
  }
  for (const OpId id : done) abandon_op(context, id, ErrorCode::kOk);
}

}  // namespace

void steal_unsealed(Context& context, Session& session, EngineId writer) {
  State& state = context.state;
  while (!session.pages.empty() && is_unsealed(session.pages.back().state)) {
    const auto page = static_cast<PageIndex>(session.pages.size() - 1);
    unpin_page(state, session, page);
    quarantine_slot(context, session.pages.back().slot, writer, {}, 0);
    session.pages.pop_back();
  }
  const auto pages = static_cast<uint32_t>(session.pages.size());
  session.position = std::min(session.position, pages * session.layout.page_tokens);
  forget_taint(session);
}

void remove_pages(Context& context, Session& session, PageIndex first, EngineId reader,
                  const Fence& fence, Entries entries) {
  State& state = context.state;
  if (first >= session.pages.size()) return;
  for (PageIndex page = static_cast<PageIndex>(session.pages.size()); page-- > first;) {
    unpin_page(state, session, page);
    leave_ops(context, session, page);
    View& view = session.pages[page];
    set_late(state, session, view, Late::kNo);
    cancel_timer(state, Timer::Kind::kAsk, view.ask_due, session.id.value, page);
    if (is_unsealed(view.state)) {
      remove_grant(context, view.slot, reader, fence);
    } else if (view.content) {
      remove_sealed(context, session, page, reader, fence, entries);
    }
    session.pages.pop_back();
  }
  if (first < session.sealed_pages) {
    session.policy->on_truncate(first);
    session.sealed_pages = first;
    tape_cut(state, session, first);
    session.tokens.resize(size_t{first} * session.layout.page_tokens);
    session.prints.resize(first);
    session.keys.resize(std::min<size_t>(session.keys.size(), first));
    if (session.first_approximate.has_value() && *session.first_approximate >= first) {
      session.first_approximate.reset();
    }
  }
  session.position = std::min(session.position, first * session.layout.page_tokens);
  forget_taint(session);
  finish_ops(context, session.id);
}

}  // namespace memdecay::ledger
