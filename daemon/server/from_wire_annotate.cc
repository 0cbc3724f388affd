// What engines and orchestrators may both say about a session: tags, hints, pins, budget, mode
// (from_wire.h).
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/limits.h"
#include "daemon/server/from_wire.h"
#include "daemon/server/wire_checks.h"

namespace memdecay::server {

namespace limits = base::limits;

namespace {

Made made(const v1::TagRequest& wire, const ledger::Origin& origin, SessionId session) {
  if (static_cast<size_t>(wire.spans_size()) > limits::kSpansAMessage) {
    return too_many("spans", static_cast<size_t>(wire.spans_size()), limits::kSpansAMessage);
  }
  ledger::Tag event{.origin = origin, .session = session};
  for (const v1::TaggedSpan& tagged : wire.spans()) {
    const absl::StatusOr<ledger::Span> range = checked_span(tagged.span());
    if (!range.ok()) return range.status();
    const absl::StatusOr<RegionId> number = region(tagged.region());
    if (!number.ok()) return number.status();
    using Atomic = ledger::TaggedSpan::Atomic;
    event.spans.push_back({.span = *range,
                           .region = *number,
                           .atomic = tagged.atomic() ? Atomic::kYes : Atomic::kNo});
  }
  return event;
}

Made made(const v1::UntagRequest& wire, const ledger::Origin& origin, SessionId session) {
  const absl::StatusOr<ledger::Span> range = checked_span(wire.span());
  if (!range.ok()) return range.status();
  return ledger::Untag{.origin = origin, .session = session, .span = *range};
}

Made made(const v1::EndGroupRequest& wire, const ledger::Origin& origin, SessionId session) {
  using Cut = ledger::EndGroup::Cut;
  ledger::EndGroup event{
      .origin = origin, .session = session, .cut = wire.cut() ? Cut::kYes : Cut::kNo};
  if (wire.has_span()) {
    const absl::StatusOr<ledger::Span> range = checked_span(wire.span());
    if (!range.ok()) return range.status();
    event.span = *range;
  }
  return event;
}

Made made(const v1::HintRequest& wire, const ledger::Origin& origin, SessionId session) {
  const absl::StatusOr<ledger::Span> range = checked_span(wire.span());
  if (!range.ok()) return range.status();
  if (!(wire.relevance() >= 0 && wire.relevance() <= 1)) {
    return refused("relevance", absl::StrCat(wire.relevance()), "0 to 1");
  }
  return ledger::Hint{
      .origin = origin, .session = session, .span = *range, .relevance = wire.relevance()};
}

Made made(const v1::SupersedeRequest& wire, const ledger::Origin& origin, SessionId session) {
  const absl::StatusOr<ledger::Span> range = checked_span(wire.span());
  if (!range.ok()) return range.status();
  return ledger::Supersede{.origin = origin, .session = session, .span = *range};
}

Made made(const v1::PinRequest& wire, const ledger::Origin& origin, SessionId session) {
  if (absl::Status status = check_range(wire.first_page(), wire.pages()); !status.ok()) {
    return status;
  }
  constexpr int64_t kMostMs = std::numeric_limits<int64_t>::max() / 4'000'000;
  if (wire.ttl_ms() < 0 || wire.ttl_ms() > kMostMs) {
    return refused("ttl_ms", absl::StrCat(wire.ttl_ms()), "0 (none) or a time in milliseconds");
  }
  ledger::Pin event{
      .origin = origin, .session = session, .first_page = wire.first_page(), .pages = wire.pages()};
  if (wire.ttl_ms() > 0) event.ttl = Duration::from_milliseconds(wire.ttl_ms());
  return event;
}

Made made(const v1::UnpinRequest& wire, const ledger::Origin& origin, SessionId session) {
  if (absl::Status status = check_range(wire.first_page(), wire.pages()); !status.ok()) {
    return status;
  }
  return ledger::Unpin{
      .origin = origin, .session = session, .first_page = wire.first_page(), .pages = wire.pages()};
}

Made made(const v1::SetModeRequest& wire, const ledger::Origin& origin, SessionId session,
          const WireRules& rules) {
  const absl::StatusOr<Mode> wanted = mode(wire.mode(), rules);
  if (!wanted.ok()) return wanted.status();
  return ledger::SetMode{.origin = origin, .session = session, .mode = *wanted};
}

// Both kinds of message name these bodies alike.
template <typename Wire>
Made annotation(const Wire& wire, const ledger::Origin& origin, SessionId session,
                const WireRules& rules) {
  switch (wire.body_case()) {
    case Wire::kTag:
      return made(wire.tag(), origin, session);
    case Wire::kUntag:
      return made(wire.untag(), origin, session);
    case Wire::kEndGroup:
      return made(wire.end_group(), origin, session);
    case Wire::kHint:
      return made(wire.hint(), origin, session);
    case Wire::kSupersede:
      return made(wire.supersede(), origin, session);
    case Wire::kPin:
      return made(wire.pin(), origin, session);
    case Wire::kUnpin:
      return made(wire.unpin(), origin, session);
    case Wire::kSetBudget:
      return ledger::SetBudget{
          .origin = origin, .session = session, .budget_pages = wire.set_budget().budget_pages()};
    case Wire::kSetMode:
      return made(wire.set_mode(), origin, session, rules);
    default:
      return refused("body", "none that this daemon knows", "see proto/README.md");
  }
}

}  // namespace

Made annotation_from_wire(const v1::StreamRequest& wire, const ledger::Origin& origin,
                          const WireRules& rules) {
  return annotation(wire, origin, SessionId{wire.session()}, rules);
}

Made event_from_wire(const v1::ApplyRequest& wire, const ledger::Origin& origin, SessionId session,
                     const WireRules& rules) {
  return annotation(wire, origin, session, rules);
}

Made pin_from_wire(const v1::PinRequest& wire, const ledger::Origin& origin, SessionId session) {
  return made(wire, origin, session);
}

Made unpin_from_wire(const v1::UnpinRequest& wire, const ledger::Origin& origin,
                     SessionId session) {
  return made(wire, origin, session);
}

}  // namespace memdecay::server
