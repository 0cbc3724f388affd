// Reports (see report.h). Metrics are in metrics.cc.
#include "daemon/ledger/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/choose.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/context.h"
#include "daemon/ledger/decisions.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/page_key.h"
#include "proto/contract/text.h"

namespace memdecay::ledger {
namespace {

SessionReport report(const State& state, const Session& session) {
  SessionReport report{
      .session = session.id,
      .name = session.name,
      .tenant = state.tenants.at(session.tenant).options.name,
      .engine = session.engine,
      .state = session.state,
      .mode = session.mode,
      .policy = session.policy->options().name,
      .policy_options = policy::differences(session.policy->options(), state.options.policy),
      .priority = session.priority,
      .budget_pages = session.budget_pages,
      .pages = static_cast<uint32_t>(session.pages.size()),
      .position = session.position,
      .step = session.step,
      .ready = session.ready ? SessionReport::Ready::kYes : SessionReport::Ready::kNo};
  for (const View& view : session.pages) {
    report.resident_pages += occupies(view.state);
    report.hole_pages += view.state == PageState::kHole;
    report.dropped_pages += view.state == PageState::kDropped;
    report.approximate_pages += view.exactness == PageView::Exactness::kApproximate;
  }
  return report;
}

Whereabouts whereabouts(const State& state, const Content& content) {
  const bool sealing = content.slot.has_value() && !content.copy;  // written in place, fence open
  Whereabouts where{.device = content.slot_valid || sealing,
                    .host = content.host == HostState::kValid};
  where.clean = where.device && where.host;
  if (content.slot.has_value()) {
    const Slab& slab = state.slabs.at(content.slot->slab);
    where.quarantined = slab.slots[content.slot->index].state == SlotState::kQuarantined;
  }
  return where;
}

PageReport report_page(const State& state, const Session& session, PageIndex page) {
  const View& view = session.pages[page];
  PageReport report{.view = page_view(state, session, page), .content = view.content};
  for (const policy::RegionRun& run : region_runs(session, page)) {
    report.regions.emplace_back(run.region, run.tokens);
  }
  if (page < session.sealed_pages) report.score = session.policy->score(page);
  const auto content = state.contents.find(view.content);
  if (content != state.contents.end()) {
    report.where = whereabouts(state, *content->second);
    if (content->second->key.has_value()) report.key_hex = to_hex(content->second->key->bytes);
  }
  report.spared = spare_reasons(state, {session.id, page}, Scope::kPool);
  if (page < session.sealed_pages && session.policy->in_grace(page)) {
    report.spared.push_back(Reason::kGrace);
  }
  const Tenant& tenant = state.tenants.at(session.tenant);
  if (tenant.reservation_pages > 0 && tenant.used <= tenant.reservation_pages) {
    report.spared.push_back(Reason::kReservation);
  }
  return report;
}

void report_keep(const State& state, Held tier, std::string_view name, TierReport& report) {
  const auto counted = [&](std::string_view what) {
    const auto& values = state.counters.values;
    const auto found = values.find(absl::StrCat(as_absl(what), "|tier=", as_absl(name)));
    return found == values.end() ? uint64_t{0} : static_cast<uint64_t>(found->second);
  };
  const bool lru = tier_by(state, tier) == RetentionSettings::By::kLru;
  report.retention = lru ? "lru" : "decay";
  report.h_s = lru ? 0 : static_cast<double>(tier_h(state, tier).milliseconds()) / 1000;
  report.hits = counted("retention_hits_total");
  report.misses = counted("retention_misses_total");
  report.admission = tier == Held::kHost ? admission(state) : "all";
}

}  // namespace

StatusReport report_status(const Ledger& ledger) {
  const State& state = ledger.state();
  StatusReport report;
  for (const auto& [id, slab] : state.slabs) {
    for (const Slot& slot : slab.slots) ++report.slots[static_cast<size_t>(slot.state)];
    report.device.used_bytes += slab.page_bytes * slab.used;
    report.device.limit_bytes += slab.page_bytes * slab.slots.size();
  }
  report.slots[static_cast<size_t>(SlotState::kFree)] = free_slots(state);
  report.device.used_pages = state.used_slots + state.retiring_pages;
  report.device.limit_pages = state.options.device_pages;
  report.host = {state.host_used_bytes, state.options.host_bytes, state.host_used_pages,
                 state.options.host_pages};
  report_keep(state, Held::kDevice, "device", report.device);
  report_keep(state, Held::kHost, "host", report.host);
  report.sessions = static_cast<uint32_t>(state.sessions.size());
  report.entries = static_cast<uint32_t>(state.index.size());
  report.leases = static_cast<uint32_t>(state.leases.size());
  for (const auto& [id, tenant] : state.tenants) report.pinned_pages += tenant.pins;
  report.copies_in_flight = static_cast<uint32_t>(state.copies.size());
  report.waiting_requests = static_cast<uint32_t>(state.waiters.size());
  for (const auto& [id, engine] : state.engines) {
    if (engine.purpose == Purpose::kDecode) ++report.engines[static_cast<size_t>(engine.state)];
  }
  return report;
}

std::vector<SessionReport> report_sessions(const Ledger& ledger, TenantId tenant) {
  std::vector<SessionReport> reports;
  for (const auto& [id, session] : ledger.state().sessions) {
    if (!tenant || session->tenant == tenant) reports.push_back(report(ledger.state(), *session));
  }
  return reports;
}

absl::StatusOr<SessionReport> report_session(const Ledger& ledger, SessionId session) {
  const auto found = ledger.state().sessions.find(session);
  if (found == ledger.state().sessions.end()) return unknown_session(session);
  return report(ledger.state(), *found->second);
}

absl::StatusOr<std::vector<PageReport>> report_pages(const Ledger& ledger, SessionId session) {
  const auto found = ledger.state().sessions.find(session);
  if (found == ledger.state().sessions.end()) return unknown_session(session);
  std::vector<PageReport> reports;
  for (PageIndex page = 0; page < found->second->pages.size(); ++page) {
    reports.push_back(report_page(ledger.state(), *found->second, page));
  }
  return reports;
}

std::optional<SessionId> find_session(const Ledger& ledger, TenantId tenant,
                                      const std::string& name) {
  for (const auto& [key, session] : ledger.state().names) {
    if (key.second == name && (!tenant || key.first == tenant)) return session;
  }
  return std::nullopt;
}

std::vector<DecisionReport> report_decisions(const Ledger& ledger, SessionId session,
                                             std::optional<PageIndex> page) {
  std::vector<DecisionReport> reports;
  const auto& decisions = ledger.state().decisions;
  for (auto it = decisions.rbegin(); it != decisions.rend(); ++it) {
    if (it->session == session && (!page.has_value() || it->page == *page)) reports.push_back(*it);
  }
  return reports;
}

std::vector<DecisionReport> report_last_decisions(const Ledger& ledger, SessionId session,
                                                  size_t most) {
  std::vector<DecisionReport> reports;
  const auto& decisions = ledger.state().decisions;
  for (auto it = decisions.rbegin(); it != decisions.rend() && reports.size() < most; ++it) {
    if (!session || it->session == session) reports.push_back(*it);
  }
  return reports;
}

absl::StatusOr<DecisionReport> report_decision(const Ledger& ledger, DecisionId decision) {
  for (const DecisionReport& report : ledger.state().decisions) {
    if (report.decision == decision) return report;
  }
  return make_error(ErrorCode::kNotFound, absl::StrCat("decision ", decision.value),
                    absl::StrCat("the last ", ledger.state().decisions.size(), " are kept"),
                    "ask earlier, or ask about the page");
}

std::vector<std::pair<PageIndex, double>> report_victims(const Ledger& ledger, SessionId session,
                                                         uint32_t count) {
  std::vector<std::pair<PageIndex, double>> victims;
  const auto found = ledger.state().sessions.find(session);
  if (found == ledger.state().sessions.end()) return victims;
  const Session& of = *found->second;
  const auto activity = is_running(of) ? policy::Activity::kActive : policy::Activity::kIdle;
  const auto may = [&](PageIndex page) {
    for (const Reason reason : spare_reasons(ledger.state(), {session, page}, Scope::kSession)) {
      if (reason != Reason::kExactModeRunning) return false;
    }
    return true;
  };
  for (const policy::Victim& victim : of.policy->lowest(count, activity, may)) {
    victims.emplace_back(victim.page, victim.score);
  }
  return victims;
}

std::vector<StartCopy> report_copies(const Ledger& ledger) {
  std::vector<StartCopy> copies;
  for (const auto& [id, copy] : ledger.state().copies) copies.push_back(copy.what);
  return copies;
}

std::vector<std::pair<std::string, double>> report_terms(const Ledger& ledger, SessionId session,
                                                         PageIndex page) {
  const auto found = ledger.state().sessions.find(session);
  if (found == ledger.state().sessions.end() || page >= found->second->sealed_pages) return {};
  return named_terms(*found->second, page);
}

}  // namespace memdecay::ledger
