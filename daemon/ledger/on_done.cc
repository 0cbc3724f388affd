// Completions: copies and fences (see apply.h). A completion that nobody waits for is counted and
// ignored; only then may its target be used again.
#include "absl/strings/str_cat.h"
#include "daemon/ledger/apply.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/grant.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/lookups.h"
#include "daemon/ledger/on_fence.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/check.h"

namespace memdecay::ledger {
namespace {

std::string_view direction(CopyKind kind) {
  switch (kind) {
    case CopyKind::kEvict:
      return "direction=evict";
    case CopyKind::kStore:
      return "direction=store";
    case CopyKind::kRestore:
      return "direction=restore";
    case CopyKind::kVerify:
      return "direction=verify";
  }
  return "";
}

absl::Status changed() {
  return make_error(ErrorCode::kDataLoss, "the bytes of a page", "their checksum is another",
                    "recompute the page");
}

// Compares with what was sealed; the first checksum of a page becomes what it is compared with.
bool as_sealed(Content& content, const Checksum& checksum) {
  if (!content.checksum.has_value()) content.checksum = checksum;
  return *content.checksum == checksum;
}

void late(Context& context, const Copy& copy) {
  count(context.state, "late_completions_total");
  Slot* slot = find_slot(context.state, copy.what.slot);
  if (slot == nullptr || slot->copy != copy.what.copy) return;
  slot->copy = {};
  settle_quarantine(context, copy.what.slot);
}

void ended(Context& context, const CopyKind kind, Content& content, const CopyDone& event) {
  absl::Status status = event.status;
  const bool compares = status.ok() && kind != CopyKind::kRestore;
  const bool same = !compares || as_sealed(content, event.checksum);
  if (kind == CopyKind::kRestore && status.ok() && content.checksum.has_value() &&
      *content.checksum != event.checksum) {
    status = changed();
  }
  const bool writes_host = kind == CopyKind::kEvict || kind == CopyKind::kStore;
  if (!same) {
    if (writes_host) drop_host_replica(context, content);
    condemn_device_replica(context, content);
    if (kind == CopyKind::kVerify) verified(context, event.copy, changed());
    return;
  }
  switch (kind) {
    case CopyKind::kEvict:
      evict_copied(context, content, status);
      break;
    case CopyKind::kStore:
      store_copied(context, content, status);
      break;
    case CopyKind::kRestore:
      restore_copied(context, content, status);
      break;
    case CopyKind::kVerify:
      content.verified = status.ok();
      refresh_ranks(context.state, content);
      progress_leaving(context, content);
      verified(context, event.copy, status);
      break;
  }
}

}  // namespace

void apply(Context& context, const CopyDone& event) {
  State& state = context.state;
  const auto found = state.copies.find(event.copy);
  if (found == state.copies.end()) {
    count(state, "late_completions_total");
    return;
  }
  Copy copy = found->second;
  cancel_timer(state, copy.abandoned ? Timer::Kind::kCopyLost : Timer::Kind::kCopy, copy.due,
               event.copy.value);
  state.copies.erase(found);
  if (copy.abandoned) {
    late(context, copy);
    return;
  }
  Content& content = *state.contents.at(copy.what.content);
  content.copy = {};
  if (event.status.ok()) {
    count(state, "copy_bytes_total", direction(copy.what.kind),
          static_cast<double>(copy.what.bytes));
    if (copy.what.kind == CopyKind::kRestore) note_restore(state, copy, context.now);
  }
  ended(context, copy.what.kind, content, event);
}

void apply(Context& context, const FencePassed& event) {
  State& state = context.state;
  const auto found = state.fences.find({event.engine, event.fence});
  if (found == state.fences.end()) return;
  const std::vector<FenceWatch> watches = std::move(found->second);
  state.fences.erase(found);
  for (const FenceWatch& watch : watches) {
    if (watch.why == FenceWatch::Why::kSeal) {
      complete_seal(context, watch.view);
    } else {
      fence_over(context, watch);
    }
  }
}

void fence_over(Context& context, const FenceWatch& watch) {
  State& state = context.state;
  switch (watch.why) {
    case FenceWatch::Why::kSeal:
      return;  // never happened: its page goes with the session's end
    case FenceWatch::Why::kSlot:
      if (Slot* slot = find_slot(state, watch.slot)) {
        if (slot->open_fences > 0) --slot->open_fences;
        settle_quarantine(context, watch.slot);
      }
      return;
    case FenceWatch::Why::kGiveUp:
      --view_of(state, watch.view).fences;
      break;
    case FenceWatch::Why::kRead:
      break;
  }
  Content* content = find_content(state, watch.content);
  if (content == nullptr) return;
  --content->open_fences;
  progress_leaving(context, *content);
}

void apply(Context& context, const SlabFailed& event) {
  State& state = context.state;
  Slab* slab = find_slab(state, event.slab);
  if (slab == nullptr) return;
  count(state, "slabs_failed_total");
  slab->mappers.clear();
  std::vector<ViewRef> granted;
  std::vector<ContentId> arriving;
  for (const Slot& slot : slab->slots) {
    if (slot.state == SlotState::kReserved && slot.holder.session) granted.push_back(slot.holder);
    if (slot.state == SlotState::kCopyingIn) arriving.push_back(slot.content);
  }
  retire_slab(context, *slab);
  for (const ViewRef& ref : granted) {
    Session* session = find_session(state, ref.session);
    if (session == nullptr || ref.page >= session->pages.size()) continue;
    remove_pages(context, *session, ref.page, {}, {});
    notify(context, session->engine, session->id, FailedNotice{ref.page, error_code(event.status)});
  }
  for (const ContentId id : arriving) {
    Content& content = *state.contents.at(id);
    state.copies.erase(content.copy);
    content.copy = {};
    restore_copied(context, content, event.status);
  }
}

}  // namespace memdecay::ledger
