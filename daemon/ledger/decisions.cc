// The record of decisions (see decisions.h).
#include "daemon/ledger/decisions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/savers.h"
#include "proto/contract/text.h"

namespace memdecay::ledger {
namespace {

DecisionReport& append(Context& context, DecisionReport report) {
  State& state = context.state;
  report.decision = DecisionId{state.next_decision++};
  report.when = context.now;
  state.decisions.push_back(std::move(report));
  if (state.decisions.size() > kDecisions) state.decisions.pop_front();
  return state.decisions.back();
}

}  // namespace

std::vector<std::pair<std::string, double>> named_terms(const Session& session, PageIndex page) {
  std::vector<std::pair<std::string, double>> terms;
  for (const policy::Term& term : session.policy->explain(page)) {
    terms.emplace_back(term.name, term.value);
  }
  return terms;
}

DecisionId record_eviction(Context& context, const Content& content, const Victim& victim,
                           const std::string& pressure, const Spared& spared) {
  State& state = context.state;
  DecisionReport report{.kind = "evict",
                        .reason = victim.reason,
                        .score = victim.score,
                        .pressure = pressure,
                        .first_spared = spared.text};
  report.page = content.page;
  if (victim.by.has_value()) {
    const Session& session = *state.sessions.at(victim.by->session);
    report.session = session.id;
    report.page = victim.by->page;
    if (!content.device_rank.has_value()) report.terms = named_terms(session, victim.by->page);
  }
  if (content.device_rank.has_value()) {  // its session's policy was not asked
    KeptScore kept = kept_score(state, content, Held::kDevice, context.now);
    report.terms = std::move(kept.terms);
    report.score = kept.score;
    if (!victim.by.has_value()) report.session = content.sealed_by;
  }
  report.saved_by = saved_by(state, victim, spared, report.terms);
  count(state, "evictions_total",
        absl::StrCat("region=", as_absl(region_name(content.region)),
                     "|reason=", as_absl(reason_name(victim.reason))));
  return append(context, std::move(report)).decision;
}

DecisionId record_drop(Context& context, const Content& content, std::string_view pressure) {
  KeptScore kept = kept_score(context.state, content, Held::kHost, context.now);
  DecisionReport report{.kind = "drop",
                        .session = content.sealed_by,
                        .page = content.page,
                        .reason = Reason::kScore,
                        .score = kept.score,
                        .terms = std::move(kept.terms),
                        .pressure = std::string(pressure),
                        .saved_by = "another use, a session that lives, or a larger host tier"};
  if (!content.views.empty()) {
    report.session = content.views.front().session;
    report.page = content.views.front().page;
  }
  return append(context, std::move(report)).decision;
}

DecisionId record(Context& context, std::string kind, ViewRef view, Reason reason) {
  return append(context, DecisionReport{.kind = std::move(kind),
                                        .session = view.session,
                                        .page = view.page,
                                        .reason = reason})
      .decision;
}

}  // namespace memdecay::ledger
