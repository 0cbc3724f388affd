// Copies in flight (see copies.h).
#include "daemon/ledger/copies.h"

#include "daemon/ledger/contents.h"
#include "daemon/ledger/slots.h"
#include "proto/contract/check.h"

namespace memdecay::ledger {

CopyId start_copy(Context& context, Content& content, CopyKind kind, OpId op) {
  State& state = context.state;
  MEMDECAY_CHECK(!content.copy && content.slot.has_value());
  const CopyId id = new_id<CopyId>(state);
  const StartCopy what{id, kind, content.id, *content.slot, content.layout.page_bytes};
  content.copy = id;
  Copy copy{.what = what, .begun = context.now, .op = op};
  if (kind != CopyKind::kRestore) {  // a restore has its op's deadline
    copy.due = set_timer(context, Timer::Kind::kCopy, state.options.pending, id.value);
  }
  state.copies.emplace(id, copy);
  if (kind == CopyKind::kEvict || kind == CopyKind::kStore) {
    content.host = HostState::kWriting;
    ++state.host_used_pages;
    state.host_used_bytes += host_page_bytes(content);
  }
  context.out.emplace_back(what);
  refresh_ranks(state, content);
  return id;
}

void abandon_copy(Context& context, Content& content) {
  State& state = context.state;
  const auto found = state.copies.find(content.copy);
  if (found == state.copies.end()) return;
  Copy& copy = found->second;
  cancel_timer(state, Timer::Kind::kCopy, copy.due, content.copy.value);
  copy.abandoned = true;
  copy.due =
      set_timer(context, Timer::Kind::kCopyLost, state.options.copy_lost, content.copy.value);
  content.copy = {};
  context.out.emplace_back(CancelCopy{copy.what.copy});
  if (copy.what.kind == CopyKind::kRestore) {
    const SlotRef target = *content.slot;
    content.slot.reset();
    quarantine_slot(context, target, {}, copy.what.copy, 0);
  } else if (content.host == HostState::kWriting) {
    drop_host_replica(context, content);
  }
  refresh_ranks(state, content);
}

bool has_copy(const State& state, const Content& content, CopyKind kind) {
  const auto found = state.copies.find(content.copy);
  return found != state.copies.end() && found->second.what.kind == kind;
}

}  // namespace memdecay::ledger
