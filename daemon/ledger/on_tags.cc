// What spans are: regions, groups, hints, superseded text, pins (see apply.h).
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/apply.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/lives.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

// No session is longer: a span beyond it is a mistake, not a prompt to come.
constexpr uint32_t kLastPosition = 1u << 26;
// Region runs and atomic spans of one session.
constexpr size_t kMostRuns = 1u << 16;

absl::StatusOr<Session*> taggable(State& state, const Origin& origin, SessionId id) {
  return origin.engine ? own_session(state, origin, id) : session_for(state, origin, id);
}

absl::Status check_span(const Span& span, uint32_t limit) {
  if (span.begin < span.end && span.end <= limit) return absl::OkStatus();
  const ErrorCode code =
      span.begin >= span.end ? ErrorCode::kInvalidArgument : ErrorCode::kOutOfRange;
  return make_error(code, absl::StrCat("span [", span.begin, ", ", span.end, ")"),
                    absl::StrCat("positions go up to ", limit),
                    "give a span with begin < end inside the session");
}

// Sealed pages that the span touches, as [first, end).
std::pair<PageIndex, PageIndex> sealed_range(const Session& session, const Span& span) {
  const uint32_t tokens = session.layout.page_tokens;
  const PageIndex first = std::min(span.begin / tokens, session.sealed_pages);
  const PageIndex end = std::min((span.end + tokens - 1) / tokens, session.sealed_pages);
  return {first, std::max(first, end)};
}

void retag(Context& context, Session& session, const Span& span) {
  const auto [first, end] = sealed_range(session, span);
  for (PageIndex page = first; page < end; ++page) {
    tell_regions(context, session, page);
    tape_tag(context.state, session, page);
  }
}

// Whether an end that names no span means pages of this region.
bool ends_with_group(const Session& session, RegionId region) {
  return region == region_id(Region::kScratchpad) ||
         session.policy->options().regions.at(region).held == policy::Held::kUntilEnded;
}

uint32_t end_position(const Session& session) {
  return static_cast<uint32_t>(session.pages.size()) * session.layout.page_tokens;
}

absl::Status check_pages(const Session& session, PageIndex first, uint32_t pages) {
  if (pages > 0 && uint64_t{first} + pages <= session.pages.size()) return absl::OkStatus();
  return make_error(ErrorCode::kUnknownPage,
                    absl::StrCat("pages ", first, " to ", uint64_t{first} + pages),
                    absl::StrCat("session ", session.name, " has ", session.pages.size(), " pages"),
                    "name pages that are there");
}

absl::Status check_pins(const State& state, const Session& session, const Pin& event) {
  absl::Status status = check_pages(session, event.first_page, event.pages);
  if (!status.ok()) return status;
  uint32_t fresh = 0;
  for (PageIndex page = event.first_page; page < event.first_page + event.pages; ++page) {
    if (session.pages[page].state == PageState::kDropped) {
      return make_error(ErrorCode::kUnknownPage, absl::StrCat("pin of page ", page),
                        "its bytes are gone", "recompute it first");
    }
    fresh += !session.pages[page].pinned;
  }
  const Tenant& tenant = state.tenants.at(session.tenant);
  const uint32_t limit = state.options.pin_budget_pages > 0 ? state.options.pin_budget_pages
                                                            : state.options.device_pages;
  const bool over_session =
      session.budget_pages > 0 && smallest_budget(state, session) + fresh > session.budget_pages;
  if (tenant.pins + fresh <= limit && !over_session) return status;
  return make_error(ErrorCode::kPinBudget, absl::StrCat(fresh, " more pins"),
                    over_session ? absl::StrCat("the session's budget is ", session.budget_pages)
                                 : absl::StrCat("tenant ", tenant.options.name, " has ",
                                                tenant.pins, " of ", limit),
                    "unpin pages or raise the budget");
}

}  // namespace

void apply(Context& context, const Tag& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = taggable(state, event.origin, event.session);
  absl::Status status = found.status();
  for (const TaggedSpan& span : event.spans) {
    if (status.ok()) status = check_span(span.span, kLastPosition);
    if (status.ok()) status = check_region(*(*found)->policy, span.region);
  }
  if (status.ok() && (*found)->tags.size() + 2 * event.spans.size() > kMostRuns) {
    status = make_error(
        ErrorCode::kResourceExhausted, absl::StrCat(event.spans.size(), " more tagged spans"),
        absl::StrCat("a session has at most ", kMostRuns, " region runs"), "tag larger spans");
  }
  if (!status.ok()) return refuse(context, event.origin.request, status);
  Session& session = **found;
  for (const TaggedSpan& span : event.spans) {
    set_region(session, span.span, span.region);
    if (span.atomic == TaggedSpan::Atomic::kYes && session.atomics.size() < kMostRuns) {
      session.atomics.push_back({span.span.begin, span.span.end});
    }
  }
  for (const TaggedSpan& span : event.spans) retag(context, session, span.span);
  reply(context, event.origin.request);
}

void apply(Context& context, const Untag& event) {
  const absl::StatusOr<Session*> found = taggable(context.state, event.origin, event.session);
  absl::Status status = found.ok() ? check_span(event.span, kLastPosition) : found.status();
  if (!status.ok()) return refuse(context, event.origin.request, status);
  Session& session = **found;
  set_region(session, event.span, session.default_region);
  std::erase_if(session.atomics, [&event](const AtomicSpan& span) {
    return span.begin >= event.span.begin && span.end <= event.span.end;
  });
  retag(context, session, event.span);
  reply(context, event.origin.request);
}

void apply(Context& context, const EndGroup& event) {
  const absl::StatusOr<Session*> found = taggable(context.state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  const bool named = event.span.begin < event.span.end;
  const Span span = named ? event.span : Span{0, end_position(session)};
  const absl::Status status = named ? check_span(span, end_position(session)) : absl::OkStatus();
  if (!status.ok()) return refuse(context, event.origin.request, status);
  const auto how =
      event.cut == EndGroup::Cut::kYes ? policy::GroupEnd::kCut : policy::GroupEnd::kDecay;
  const auto [first, end] = sealed_range(session, span);
  for (PageIndex page = first; page < end;) {
    const auto belongs = [&](PageIndex at) {
      return named || ends_with_group(session, main_region(session, at));
    };
    PageIndex last = page;
    if (belongs(page)) {
      while (last + 1 < end && belongs(last + 1)) ++last;
      session.policy->on_end_group(page, last, how);
    }
    page = last + 1;
  }
  reply(context, event.origin.request);
}

void apply(Context& context, const Hint& event) {
  const absl::StatusOr<Session*> found = taggable(context.state, event.origin, event.session);
  absl::Status status = found.ok() ? check_span(event.span, end_position(**found)) : found.status();
  if (status.ok() && !(event.relevance >= 0 && event.relevance <= 1)) {
    status = make_error(ErrorCode::kInvalidArgument, absl::StrCat("relevance ", event.relevance),
                        {}, "give a number from 0 to 1");
  }
  if (!status.ok()) return refuse(context, event.origin.request, status);
  const auto [first, end] = sealed_range(**found, event.span);
  for (PageIndex page = first; page < end; ++page) {
    (*found)->policy->on_hint(page, event.relevance);
  }
  reply(context, event.origin.request);
}

void apply(Context& context, const Supersede& event) {
  const absl::StatusOr<Session*> found = taggable(context.state, event.origin, event.session);
  const absl::Status status =
      found.ok() ? check_span(event.span, end_position(**found)) : found.status();
  if (!status.ok()) return refuse(context, event.origin.request, status);
  const auto [first, end] = sealed_range(**found, event.span);
  for (PageIndex page = first; page < end; ++page) (*found)->policy->on_supersede(page);
  reply(context, event.origin.request);
}

void apply(Context& context, const Pin& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = taggable(state, event.origin, event.session);
  absl::Status status = found.ok() ? check_pins(state, **found, event) : found.status();
  if (status.ok() && event.ttl.has_value() && event.ttl->nanoseconds <= 0) {
    status = make_error(ErrorCode::kInvalidArgument, "a pin without time", {},
                        "give a ttl above 0, or none");
  }
  if (!status.ok()) return refuse(context, event.origin.request, status);
  Session& session = **found;
  for (PageIndex page = event.first_page; page < event.first_page + event.pages; ++page) {
    View& view = session.pages[page];
    if (!view.pinned) {
      view.pinned = true;
      tape_pin(state, session, page);
      ++state.tenants.at(session.tenant).pins;
      if (page < session.sealed_pages) session.policy->on_pin(page);
    }
    cancel_timer(state, Timer::Kind::kPin, view.pin_until, session.id.value, page);
    if (event.ttl.has_value()) {
      view.pin_until =
          set_timer(context, Timer::Kind::kPin, std::min(*event.ttl, state.options.pin_ttl_cap),
                    session.id.value, page);
    }
    if (view.state == PageState::kAsked) withdraw(context, session, page);
  }
  reply(context, event.origin.request);
}

void apply(Context& context, const Unpin& event) {
  const absl::StatusOr<Session*> found = taggable(context.state, event.origin, event.session);
  const absl::Status status =
      found.ok() ? check_pages(**found, event.first_page, event.pages) : found.status();
  if (!status.ok()) return refuse(context, event.origin.request, status);
  for (PageIndex page = event.first_page; page < event.first_page + event.pages; ++page) {
    unpin_page(context.state, **found, page);
  }
  reply(context, event.origin.request);
}

}  // namespace memdecay::ledger
