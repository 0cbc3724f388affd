// What orchestrators and operators ask of a real daemon. Each request has a thread, since it may
// wait. See real_world.h.
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/scenario/real_world.h"

namespace memdecay::scenario {
namespace {

using ledger::Reply;

template <typename Request>
void name_session(Request& request, SessionId session) {
  request.mutable_session()->set_session(session.value);
}

void fill_span(v1::Span& out, const ledger::Span& span) {
  out.set_begin(span.begin);
  out.set_end(span.end);
}

// The part of the events that Orchestrator.Apply takes; false: another one.
bool fill_apply(const ledger::Event& event, v1::ApplyRequest& request) {
  if (const auto* tag = std::get_if<ledger::Tag>(&event)) {
    name_session(request, tag->session);
    for (const ledger::TaggedSpan& span : tag->spans) {
      v1::TaggedSpan& wire = *request.mutable_tag()->add_spans();
      fill_span(*wire.mutable_span(), span.span);
      wire.set_region(span.region);
      wire.set_atomic(span.atomic == ledger::TaggedSpan::Atomic::kYes);
    }
  } else if (const auto* untag = std::get_if<ledger::Untag>(&event)) {
    name_session(request, untag->session);
    fill_span(*request.mutable_untag()->mutable_span(), untag->span);
  } else if (const auto* hint = std::get_if<ledger::Hint>(&event)) {
    name_session(request, hint->session);
    fill_span(*request.mutable_hint()->mutable_span(), hint->span);
    request.mutable_hint()->set_relevance(hint->relevance);
  } else if (const auto* supersede = std::get_if<ledger::Supersede>(&event)) {
    name_session(request, supersede->session);
    fill_span(*request.mutable_supersede()->mutable_span(), supersede->span);
  } else if (const auto* budget = std::get_if<ledger::SetBudget>(&event)) {
    name_session(request, budget->session);
    request.mutable_set_budget()->set_budget_pages(budget->budget_pages);
  } else if (const auto* mode = std::get_if<ledger::SetMode>(&event)) {
    name_session(request, mode->session);
    request.mutable_set_mode()->set_mode(mode->mode == Mode::kLossy ? v1::MODE_LOSSY
                                                                    : v1::MODE_EXACT);
  } else {
    return false;
  }
  return true;
}

Reply pin(RealAdmin& admin, const ledger::Pin& event) {
  v1::AdminPinRequest request;
  v1::AdminPinResponse response;
  name_session(request, event.session);
  request.mutable_pin()->set_first_page(event.first_page);
  request.mutable_pin()->set_pages(event.pages);
  if (event.ttl) request.mutable_pin()->set_ttl_ms(event.ttl->milliseconds());
  return {.status = admin.call(request, response)};
}

Reply unpin(RealAdmin& admin, const ledger::Unpin& event) {
  v1::AdminUnpinRequest request;
  v1::AdminUnpinResponse response;
  name_session(request, event.session);
  request.mutable_unpin()->set_first_page(event.first_page);
  request.mutable_unpin()->set_pages(event.pages);
  return {.status = admin.call(request, response)};
}

Reply evict(RealAdmin& admin, const ledger::EvictPages& event) {
  v1::AdminEvictRequest request;
  v1::AdminEvictResponse response;
  name_session(request, event.session);
  for (const PageIndex page : event.pages) request.add_pages(page);
  return {.status = admin.call(request, response)};
}

Reply restore(RealAdmin& admin, const ledger::RestorePages& event) {
  v1::AdminRestoreRequest request;
  v1::AdminRestoreResponse response;
  name_session(request, event.session);
  for (const PageIndex page : event.pages) request.add_pages(page);
  Reply reply{.status = admin.call(request, response)};
  ledger::RestoreReply body{.resident = response.result().resident()};
  for (const v1::FailedPage& failed : response.result().failed()) {
    body.failed.emplace_back(failed.page(), static_cast<ErrorCode>(failed.code()));
  }
  reply.body = std::move(body);
  return reply;
}

Reply drop(RealAdmin& admin, const ledger::Drop& event) {
  v1::DropRequest request;
  v1::DropResponse response;
  if (event.session) name_session(request, event.session);
  for (const PageIndex page : event.pages) request.add_pages(page);
  request.set_tier(static_cast<v1::Tier>(event.tier));
  request.set_all_tiers(event.reach == ledger::Drop::Reach::kAllTiers);
  Reply reply{.status = admin.call(request, response)};
  ledger::DropReply body;
  for (const v1::ClearedTier& cleared : response.cleared()) {
    body.cleared.emplace_back(static_cast<Tier>(cleared.tier()), cleared.pages());
  }
  reply.body = std::move(body);
  return reply;
}

Reply pressure(RealAdmin& admin, const ledger::Pressure& event, const std::string& tenant) {
  v1::PressureRequest request;
  v1::PressureResponse response;
  request.set_pages(event.pages);
  request.set_tenant(tenant);
  Reply reply{.status = admin.call(request, response)};
  reply.body = ledger::PressureReply{.free_pages = response.free_pages()};
  return reply;
}

}  // namespace

ledger::Reply RealWorld::operate(const ledger::Event& event, const std::string& tenant) {
  v1::ApplyRequest request;
  if (fill_apply(event, request)) {
    v1::ApplyResponse response;
    return {.status = admin_->call(request, response)};
  }
  if (const auto* what = std::get_if<ledger::Pin>(&event)) return pin(*admin_, *what);
  if (const auto* what = std::get_if<ledger::Unpin>(&event)) return unpin(*admin_, *what);
  if (const auto* what = std::get_if<ledger::EvictPages>(&event)) return evict(*admin_, *what);
  if (const auto* what = std::get_if<ledger::RestorePages>(&event)) return restore(*admin_, *what);
  if (const auto* what = std::get_if<ledger::Drop>(&event)) return drop(*admin_, *what);
  if (const auto* what = std::get_if<ledger::Pressure>(&event)) {
    return pressure(*admin_, *what, tenant);
  }
  return {.status = make_error(ErrorCode::kUnsupported, "an operator", "cannot ask this")};
}

void RealWorld::ask_ours(const std::shared_ptr<Asked>& asked, ledger::Event event,
                         std::string tenant) {
  asked->thread = std::thread([this, asked, event = std::move(event), tenant = std::move(tenant)] {
    ledger::Reply reply = operate(event, tenant);
    const std::lock_guard lock(mutex_);
    asked->reply = std::move(reply);
    asked->done = true;
    arrived_.notify_all();
  });
}

}  // namespace memdecay::scenario
