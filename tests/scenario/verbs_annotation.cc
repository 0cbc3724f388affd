// tag, untag, endgroup, pin, unpin, hint, supersede, attend, steps: what is said about pages.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/contract/vocabulary.h"
#include "tests/scenario/stage.h"

namespace memdecay::scenario {
namespace {

struct ModelSpan {
  std::shared_ptr<SessionModel> session;
  ledger::Span span;
};

absl::StatusOr<ModelSpan> find_span(Stage& stage, const Call& call) {
  if (call.arguments.empty()) return bad_value("a span", call.raw, "like S@24..87 or S:0..3");
  const absl::StatusOr<TokenSpan> span = parse_span(call.arguments[0], stage.page_tokens());
  if (!span.ok()) return span.status();
  const auto session = find_session(stage, span->session);
  if (!session.ok()) return session.status();
  return ModelSpan{*session, span->span};
}

Outcome say(Stage& stage, const Call& call, const SessionModel& session, ledger::Event event) {
  return ask(stage, call, anybody_of(stage, session, call), std::move(event), Waits::kForAnswer)
      .outcome;
}

Outcome tag_verb(Stage& stage, const Call& call) {
  const absl::StatusOr<ModelSpan> span = find_span(stage, call);
  if (!span.ok()) return broken(span.status());
  if (call.arguments.size() < 2) return broken("tag S:0..1 REGION [atomic]");
  RegionId region = 0;
  if (const auto known = region_from_name(call.arguments[1])) {
    region = *known;
  } else {
    const absl::StatusOr<uint32_t> number = parse_count(call.arguments[1]);
    if (!number.ok() || *number > UINT16_MAX) return broken("no such region");
    region = static_cast<RegionId>(*number);
  }
  using Atomic = ledger::TaggedSpan::Atomic;
  const bool atomic = call.arguments.size() > 2 && call.arguments[2] == "atomic";
  return say(stage, call, *span->session,
             ledger::Tag{.session = span->session->id,
                         .spans = {{.span = span->span,
                                    .region = region,
                                    .atomic = atomic ? Atomic::kYes : Atomic::kNo}}});
}

Outcome untag_verb(Stage& stage, const Call& call) {
  const absl::StatusOr<ModelSpan> span = find_span(stage, call);
  if (!span.ok()) return broken(span.status());
  return say(stage, call, *span->session,
             ledger::Untag{.session = span->session->id, .span = span->span});
}

Outcome endgroup_verb(Stage& stage, const Call& call) {
  if (call.arguments.empty()) return broken("endgroup S [cut]");
  using Cut = ledger::EndGroup::Cut;
  const bool cut = call.arguments.back() == "cut";
  ledger::EndGroup event{.cut = cut ? Cut::kYes : Cut::kNo};
  const std::string& what = call.arguments[0];
  if (what.find('@') != std::string::npos || what.find(':') != std::string::npos) {
    const absl::StatusOr<ModelSpan> span = find_span(stage, call);
    if (!span.ok()) return broken(span.status());
    event.session = span->session->id;
    event.span = span->span;
    return say(stage, call, *span->session, event);
  }
  const auto session = find_session(stage, what);
  if (!session.ok()) return broken(session.status());
  event.session = (*session)->id;
  return say(stage, call, **session, event);
}

Outcome pin_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("pin S:2 [ttl=30s]");
  const absl::StatusOr<ModelPages> pages = find_pages(stage, call.arguments[0]);
  if (!pages.ok()) return broken(pages.status());
  if (pages->pages.empty()) return broken("no pages to pin");
  ledger::Pin event{.session = pages->session->id,
                    .first_page = pages->pages.front(),
                    .pages = static_cast<uint32_t>(pages->pages.size())};
  if (const auto ttl = call.option("ttl")) {
    const absl::StatusOr<Duration> duration = parse_duration(*ttl);
    if (!duration.ok()) return broken(duration.status());
    event.ttl = *duration;
  }
  return say(stage, call, *pages->session, event);
}

Outcome unpin_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("unpin S:2");
  const absl::StatusOr<ModelPages> pages = find_pages(stage, call.arguments[0]);
  if (!pages.ok()) return broken(pages.status());
  if (pages->pages.empty()) return broken("no pages to unpin");
  return say(stage, call, *pages->session,
             ledger::Unpin{.session = pages->session->id,
                           .first_page = pages->pages.front(),
                           .pages = static_cast<uint32_t>(pages->pages.size())});
}

Outcome hint_verb(Stage& stage, const Call& call) {
  const absl::StatusOr<ModelSpan> span = find_span(stage, call);
  if (!span.ok()) return broken(span.status());
  if (call.arguments.size() != 2) return broken("hint S@0..63 0.8");
  const absl::StatusOr<double> relevance = parse_number(call.arguments[1]);
  if (!relevance.ok()) return broken(relevance.status());
  return say(
      stage, call, *span->session,
      ledger::Hint{.session = span->session->id, .span = span->span, .relevance = *relevance});
}

Outcome supersede_verb(Stage& stage, const Call& call) {
  const absl::StatusOr<ModelSpan> span = find_span(stage, call);
  if (!span.ok()) return broken(span.status());
  return say(stage, call, *span->session,
             ledger::Supersede{.session = span->session->id, .span = span->span});
}

uint32_t written_tokens(const Stage& stage, const SessionModel& session) {
  uint32_t pages = 0;
  while (pages < session.pages.size() && session.pages[pages].sealed) ++pages;
  return pages * stage.page_tokens();
}

absl::Status add_masses(Stage& stage, const std::string& word, double mass,
                        ledger::Observe& observe) {
  const absl::StatusOr<ModelPages> pages = find_pages(stage, word);
  if (!pages.ok()) return pages.status();
  for (const PageIndex page : pages->pages) observe.masses.emplace_back(page, mass);
  return absl::OkStatus();
}

Outcome attend_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 1) return broken("attend S step=12 … S:0=0.2 …");
  const auto found = find_session(stage, call.arguments[0]);
  if (!found.ok()) return broken(found.status());
  SessionModel& session = **found;
  ledger::Observe observe{.session = session.id,
                          .step = session.step + 1,
                          .position = written_tokens(stage, session),
                          .queries = 1};
  for (const auto& [name, text] : call.options) {
    if (name == "epoch") continue;
    const absl::StatusOr<double> value = parse_number(text);
    if (!value.ok()) return broken(value.status());
    if (name == "step") {
      observe.step = static_cast<uint64_t>(*value);
    } else if (name == "queries") {
      observe.queries = static_cast<uint32_t>(*value);
    } else if (name == "sink") {
      observe.sink = *value;
    } else if (name == "tail") {
      observe.tail = *value;
    } else if (name == "rest") {
      observe.rest = *value;
    } else if (absl::Status added = add_masses(stage, name, *value, observe); !added.ok()) {
      return broken(added);
    }
  }
  const uint64_t step = observe.step;
  Asked asked = ask(stage, call, engine_of(session, call), std::move(observe), Waits::kForAnswer);
  if (asked.outcome.status.ok()) session.step = std::max(session.step, step);
  return asked.outcome;
}

Outcome steps_verb(Stage& stage, const Call& call) {
  if (call.arguments.size() != 2) return broken("steps S 100");
  const auto found = find_session(stage, call.arguments[0]);
  const absl::StatusOr<uint32_t> count = parse_count(call.arguments[1]);
  if (!found.ok()) return broken(found.status());
  if (!count.ok()) return broken(count.status());
  SessionModel& session = **found;
  Asked asked = ask(stage, call, engine_of(session, call),
                    ledger::Observe{.session = session.id,
                                    .step = session.step + *count,
                                    .position = written_tokens(stage, session)},
                    Waits::kForAnswer);
  if (asked.outcome.status.ok()) session.step += *count;
  return asked.outcome;
}

constexpr VerbEntry kVerbs[] = {
    {"tag", tag_verb},       {"untag", untag_verb},         {"endgroup", endgroup_verb},
    {"pin", pin_verb},       {"unpin", unpin_verb},         {"hint", hint_verb},
    {"attend", attend_verb}, {"supersede", supersede_verb}, {"steps", steps_verb},
};

}  // namespace

absl::Span<const VerbEntry> annotation_verbs() { return kVerbs; }

}  // namespace memdecay::scenario
