// One function a message (to_wire.h). Enums of the contract and of the wire have the same numbers,
// which the static_asserts pin down; Mode alone has an "unspecified" in front on the wire.
#include "daemon/server/to_wire.h"

#include <algorithm>
#include <string>
#include <variant>

#include "proto/contract/vocabulary.h"

namespace memdecay::server {
namespace {

static_assert(static_cast<int>(PageState::kDropped) == v1::PAGE_STATE_DROPPED);
static_assert(static_cast<int>(ErrorCode::kInternal) == v1::ERROR_CODE_INTERNAL);
static_assert(static_cast<int>(Reason::kReservation) == v1::REASON_RESERVATION);
static_assert(static_cast<int>(SessionState::kOrphaned) == v1::SESSION_STATE_ORPHANED);
static_assert(static_cast<int>(Tier::kRemote) == v1::TIER_REMOTE);

v1::Mode mode_to_wire(Mode mode) { return mode == Mode::kExact ? v1::MODE_EXACT : v1::MODE_LOSSY; }

void fill(v1::SlotRef& out, const SlotRef& slot) {
  out.set_slab(slot.slab.value);
  out.set_index(slot.index);
  out.set_generation(slot.generation);
}

void fill(v1::PageView& out, const ledger::PageView& view) {
  out.set_page(view.page);
  out.set_state(static_cast<v1::PageState>(view.state));
  if (view.slot.slab) fill(*out.mutable_slot(), view.slot);
  out.set_approximate(view.exactness == ledger::PageView::Exactness::kApproximate);
}

template <typename Repeated>
void fill_views(Repeated* out, const std::vector<ledger::PageView>& views) {
  out->Reserve(static_cast<int>(views.size()));
  for (const ledger::PageView& view : views) fill(*out->Add(), view);
}

void fill(v1::SessionReply& out, const ledger::SessionReply& in) {
  out.set_session(in.session.value);
  out.set_name(in.name);
  out.set_position(in.position);
  out.mutable_tokens()->Add(in.tokens.begin(), in.tokens.end());
  for (const ledger::RegionSpan& span : in.regions) {
    v1::TaggedSpan& tagged = *out.add_regions();
    tagged.mutable_span()->set_begin(span.begin);
    tagged.mutable_span()->set_end(span.end);
    tagged.set_region(span.region);
  }
  fill_views(out.mutable_pages(), in.pages);
  out.set_ready(in.ready == ledger::SessionReply::Ready::kYes);
  out.set_step(in.step);
  out.set_mode(mode_to_wire(in.mode));
}

void fill(v1::RepairReply& out, const ledger::RepairReply& in) {
  out.set_needed(in.needed == ledger::RepairReply::Needed::kYes);
  out.set_first_page(in.first_page);
  out.set_tokens(in.tokens);
}

void fill(v1::AcquireReply& out, const ledger::AcquireReply& in, Instant now) {
  out.set_lease(in.lease.value);
  out.set_pages(in.pages);
  out.set_expires_in_ms(std::max<int64_t>(0, (in.expires - now).milliseconds()));
  fill_views(out.mutable_views(), in.views);
}

// One overload a notice.
struct NoticeFiller {
  v1::StreamResponse& out;

  void operator()(const ledger::EvictNotice& n) const {
    v1::EvictNotice& wire = *out.mutable_evict();
    wire.set_decision(n.decision.value);
    for (const auto& [page, reason] : n.pages) {
      v1::EvictPage& asked = *wire.add_pages();
      asked.set_page(page);
      asked.set_reason(static_cast<v1::Reason>(reason));
    }
  }
  void operator()(const ledger::WithdrawNotice& n) const {
    out.mutable_withdraw()->set_decision(n.decision.value);
    out.mutable_withdraw()->mutable_pages()->Add(n.pages.begin(), n.pages.end());
  }
  void operator()(const ledger::ReleasedNotice& n) const {
    v1::ReleasedNotice& wire = *out.mutable_released();
    for (const auto& [page, slot] : n.pages) {
      v1::ReleasedPage& released = *wire.add_pages();
      released.set_page(page);
      fill(*released.mutable_slot(), slot);
    }
  }
  void operator()(const ledger::RestoreNotice& n) const {
    fill_views(out.mutable_restore()->mutable_pages(), n.pages);
  }
  void operator()(const ledger::ReadyNotice&) const { out.mutable_ready(); }
  void operator()(const ledger::FailedNotice& n) const {
    out.mutable_failed()->set_page(n.page);
    out.mutable_failed()->set_code(static_cast<v1::ErrorCode>(n.code));
  }
  void operator()(const ledger::LostNotice& n) const { out.mutable_lost()->set_page(n.page); }
  void operator()(const ledger::BudgetNotice& n) const {
    out.mutable_budget()->set_budget_pages(n.budget_pages);
  }
  void operator()(const ledger::ModeNotice& n) const {
    out.mutable_mode()->set_mode(mode_to_wire(n.mode));
  }
  void operator()(const ledger::ShutdownNotice&) const { out.mutable_shutdown(); }
  void operator()(const ledger::UnmapSlabNotice& n) const {
    out.mutable_unmap_slab()->set_slab(n.slab.value);
  }
};

}  // namespace

v1::ErrorDetail error_to_wire(const absl::Status& status) {
  const ErrorDetail detail = error_detail(status);
  v1::ErrorDetail out;
  out.set_code(static_cast<v1::ErrorCode>(detail.code));
  out.set_asked(detail.asked);
  out.set_there(detail.there);
  out.set_todo(detail.todo);
  out.set_retry_after_ms(detail.retry_after_ms);
  return out;
}

v1::PageView view_to_wire(const ledger::PageView& view) {
  v1::PageView out;
  fill(out, view);
  return out;
}

v1::StreamResponse reply_to_wire(const ledger::Reply& reply, uint64_t seq, Instant now) {
  v1::StreamResponse out;
  v1::Reply& wire = *out.mutable_reply();
  wire.set_re(seq);
  if (!reply.status.ok()) {
    *wire.mutable_error() = error_to_wire(reply.status);
    return out;
  }
  if (const auto* session = std::get_if<ledger::SessionReply>(&reply.body)) {
    out.set_session(session->session.value);
    fill(*wire.mutable_session(), *session);
  } else if (const auto* grant = std::get_if<ledger::GrantReply>(&reply.body)) {
    fill_views(wire.mutable_grant()->mutable_pages(), grant->pages);
  } else if (const auto* repair = std::get_if<ledger::RepairReply>(&reply.body)) {
    fill(*wire.mutable_repair(), *repair);
  } else if (const auto* restore = std::get_if<ledger::RestoreReply>(&reply.body)) {
    fill(*wire.mutable_restore(), *restore);
  } else if (const auto* acquire = std::get_if<ledger::AcquireReply>(&reply.body)) {
    fill(*wire.mutable_acquire(), *acquire, now);
  }
  return out;
}

v1::StreamResponse error_reply_to_wire(const absl::Status& status, uint64_t seq, uint64_t session) {
  v1::StreamResponse out;
  out.set_session(session);
  out.mutable_reply()->set_re(seq);
  if (!status.ok()) *out.mutable_reply()->mutable_error() = error_to_wire(status);
  return out;
}

v1::StreamResponse notice_to_wire(const ledger::Notice& notice) {
  v1::StreamResponse out;
  out.set_session(notice.session.value);
  std::visit(NoticeFiller{out}, notice.body);
  return out;
}

void fill(v1::LookupResponse& out, const ledger::LookupReply& in) {
  out.set_pages(in.pages);
  out.set_device_pages(in.device_pages);
  out.set_host_pages(in.host_pages);
  out.set_first_missing(in.first_missing);
  out.set_pending(in.pending == ledger::LookupReply::Pending::kYes);
}

void fill(v1::RestoreReply& out, const ledger::RestoreReply& in) {
  out.set_resident(in.resident);
  for (const auto& [page, code] : in.failed) {
    v1::FailedPage& failed = *out.add_failed();
    failed.set_page(page);
    failed.set_code(static_cast<v1::ErrorCode>(code));
  }
}

void fill(v1::DropResponse& out, const ledger::DropReply& in) {
  for (const auto& [tier, pages] : in.cleared) {
    v1::ClearedTier& cleared = *out.add_cleared();
    cleared.set_tier(static_cast<v1::Tier>(tier));
    cleared.set_pages(pages);
  }
}

Owed answer_owed(const ledger::Notice& notice) {
  const bool owed = std::holds_alternative<ledger::EvictNotice>(notice.body) ||
                    std::holds_alternative<ledger::WithdrawNotice>(notice.body) ||
                    std::holds_alternative<ledger::RestoreNotice>(notice.body) ||
                    std::holds_alternative<ledger::UnmapSlabNotice>(notice.body);
  return owed ? Owed::kYes : Owed::kNo;
}

}  // namespace memdecay::server
