// Client: what the daemon says, and how pages leave and come at a boundary.
// Thread: gRPC's, under the client's mutex; see client.h.
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/client.h"
#include "client/lib/convert.h"

namespace memdecay::client {
namespace {

memdecay_event event_of(memdecay_event_kind kind, SessionId session) {
  memdecay_event event{};
  event.kind = kind;
  event.session = session.value;
  return event;
}

memdecay_event with_slot(memdecay_event event, const v1::SlotRef& slot) {
  event.slab = slot.slab();
  event.slot = slot.index();
  event.generation = slot.generation();
  return event;
}

ErrorCode code_of(v1::ErrorCode code) {
  v1::ErrorDetail detail;
  detail.set_code(code);
  return error_of(detail).code;
}

}  // namespace

void Client::on_message(const v1::StreamResponse& message) {
  absl::MutexLock lock(&mutex_);
  stream_failures_ = 0;
  if (message.body_case() == v1::StreamResponse::kReply) {
    take_reply(message.reply());
    return;
  }
  // A notice that was being written when a stream broke comes again on the next one.
  if (message.seq() <= last_notice_) return;
  last_notice_ = message.seq();
  const SessionId session{message.session()};
  if (message.body_case() == v1::StreamResponse::kShutdown) {
    push(event_of(MEMDECAY_EVENT_SHUTDOWN, session));
  } else if (message.body_case() == v1::StreamResponse::kUnmapSlab) {
    const SlabId slab{message.unmap_slab().slab()};
    memdecay_event event = event_of(MEMDECAY_EVENT_UNMAP_SLAB, session);
    event.slab = slab.value;
    push(event);
    leaving_slabs_[slab] = Answer::kYes;
    unmap_unused();
  } else if (Session* known = find(session)) {
    take_notice(*known, message);
    settle(*known);
  }
}

void Client::take_reply(const v1::Reply& reply) {
  const bool stale = reply.error().code() == v1::ERROR_CODE_STALE_EPOCH;
  const std::optional<uint64_t> ticket = stale ? outbox_.ticket_of(reply.re()) : std::nullopt;
  // It was on its way while we attached again, and nothing has come of it.
  if (ticket && outbox_.message(*ticket).epoch() != welcome_.epoch.value) {
    const v1::StreamRequest& again = outbox_.renumber(*ticket, welcome_.epoch.value);
    if (link_state_ == Link::kUp && stream_ != nullptr) stream_->send(again);
    return;
  }
  outbox_.settle(reply);
}

void Client::on_down(absl::Status why) {
  {
    absl::MutexLock lock(&mutex_);
    stream_broke_ = true;
    ++stream_failures_;
    const ErrorCode code = error_code(why);
    engine_unknown_ = code == ErrorCode::kStaleEpoch || code == ErrorCode::kPermission;
    if (link_state_ == Link::kUp) {
      link_state_ = Link::kDown;
      push(event_of(MEMDECAY_EVENT_DISCONNECTED, {}));
    }
  }
  wake_keeper();
}

void Client::take_evict(Session& session, const v1::EvictNotice& notice) {
  // The daemon may have seen a seal's fence pass before we looked: such a page is mapped.
  close_passed_seals(session);
  const DecisionId decision{notice.decision()};
  std::vector<PageIndex> pages;
  for (const v1::EvictPage& page : notice.pages()) {
    memdecay_event event = event_of(MEMDECAY_EVENT_EVICT, session.id);
    event.decision = decision.value;
    event.page = page.page();
    event.reason = static_cast<uint32_t>(page.reason());
    push(event);
    pages.push_back(page.page());
  }
  session.table.ask(decision, pages);
}

void Client::take_withdraw(Session& session, const v1::WithdrawNotice& notice) {
  for (const uint32_t page : notice.pages()) {
    memdecay_event event = event_of(MEMDECAY_EVENT_WITHDRAW, session.id);
    event.decision = notice.decision();
    event.page = page;
    push(event);
  }
  const auto& pages = notice.pages();
  v1::StreamRequest kept;
  kept.mutable_kept();
  for (const PageIndex page : session.table.withdraw({pages.data(), size_t(pages.size())})) {
    kept.mutable_kept()->add_pages(page);
  }
  post(session.id, std::move(kept), Outbox::Wait::kNobody, nullptr);
}

void Client::take_released(Session& session, const v1::ReleasedNotice& notice) {
  for (const v1::ReleasedPage& page : notice.pages()) {
    session.table.released(page.page());
    memdecay_event event = event_of(MEMDECAY_EVENT_RELEASED, session.id);
    event.page = page.page();
    push(with_slot(event, page.slot()));
  }
}

void Client::take_restore(Session& session, const v1::RestoreNotice& notice) {
  for (const v1::PageView& view : notice.pages()) {
    memdecay_event event = event_of(MEMDECAY_EVENT_RESTORE, session.id);
    event.page = view.page();
    push(with_slot(event, view.slot()));
  }
  session.table.offer(all_news(notice.pages()));
}

void Client::take_trouble(Session& session, PageTrouble trouble, memdecay_event_kind kind) {
  memdecay_event event = event_of(kind, session.id);
  event.page = trouble.page;
  event.code = static_cast<memdecay_code>(trouble.code);
  push(event);
  session.trouble = trouble;
  if (kind == MEMDECAY_EVENT_LOST) {
    session.table.lost(trouble.page);
  } else {
    session.table.failed(trouble.page);
  }
}

void Client::take_notice(Session& session, const v1::StreamResponse& message) {
  memdecay_event event = event_of(MEMDECAY_EVENT_READY, session.id);
  switch (message.body_case()) {
    case v1::StreamResponse::kEvict:
      return take_evict(session, message.evict());
    case v1::StreamResponse::kWithdraw:
      return take_withdraw(session, message.withdraw());
    case v1::StreamResponse::kReleased:
      return take_released(session, message.released());
    case v1::StreamResponse::kRestore:
      return take_restore(session, message.restore());
    case v1::StreamResponse::kReady:
      session.ready = true;
      session.trouble.reset();
      return push(event);
    case v1::StreamResponse::kFailed:
      return take_trouble(session, {message.failed().page(), code_of(message.failed().code())},
                          MEMDECAY_EVENT_FAILED);
    case v1::StreamResponse::kLost:
      return take_trouble(session, {message.lost().page(), ErrorCode::kDataLoss},
                          MEMDECAY_EVENT_LOST);
    case v1::StreamResponse::kBudget:
      event.kind = MEMDECAY_EVENT_BUDGET;
      event.value = session.budget_pages = message.budget().budget_pages();
      return push(event);
    case v1::StreamResponse::kMode:
      event.kind = MEMDECAY_EVENT_MODE;
      session.mode = static_cast<memdecay_mode>(message.mode().mode());
      event.value = static_cast<uint32_t>(session.mode);
      return push(event);
    case v1::StreamResponse::kReply:
    case v1::StreamResponse::kShutdown:
    case v1::StreamResponse::kUnmapSlab:
    case v1::StreamResponse::BODY_NOT_SET:
      return;
  }
}

void Client::settle(Session& session) {
  if (session.in_step || acks_ == ClientOptions::Acks::kManual) return;
  apply_pending(session, session.last_read);
}

void Client::apply_pending(Session& session, const memdecay_fence& fence) {
  if (session.orphaned) return;
  close_passed_seals(session);
  for (const GivenUp& given : session.table.give_up()) {
    v1::StreamRequest message;
    v1::GaveUpRequest* gave_up = message.mutable_gave_up();
    gave_up->set_decision(given.decision.value);
    gave_up->mutable_pages()->Add(given.pages.begin(), given.pages.end());
    if (!passed(fence)) set_fence(gave_up->mutable_fence(), fence);
    gave_up->set_position(session.written_tokens);
    post(session.id, std::move(message), Outbox::Wait::kNobody, nullptr);
  }
  const NowResident now_resident = session.table.take_offered();
  if (!now_resident.pages.empty()) {
    v1::StreamRequest message;
    v1::ResidentRequest* resident = message.mutable_resident();
    resident->mutable_pages()->Add(now_resident.pages.begin(), now_resident.pages.end());
    resident->mutable_generations()->Add(now_resident.generations.begin(),
                                         now_resident.generations.end());
    resident->set_position(session.written_tokens);
    post(session.id, std::move(message), Outbox::Wait::kNobody, nullptr);
  }
  if (!leaving_slabs_.empty()) unmap_unused();
}

void Client::unmap_unused() {
  for (auto it = leaving_slabs_.begin(); it != leaving_slabs_.end();) {
    const auto [slab, answer] = *it;
    bool used = false;
    for (const auto& [id, session] : sessions_) used = used || session->table.uses(slab);
    if (used) {
      ++it;
      continue;
    }
    slabs_.remove(slab);
    if (answer == Answer::kYes) {
      v1::StreamRequest message;
      message.mutable_slab_unmapped()->set_slab(slab.value);
      post({}, std::move(message), Outbox::Wait::kNobody, nullptr);
    }
    it = leaving_slabs_.erase(it);
  }
}

}  // namespace memdecay::client
