// Field by field (to_wire_report.h).
#include "daemon/server/to_wire_report.h"

#include <string>
#include <string_view>

#include "daemon/server/to_wire.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::server {
namespace {

void fill(v1::TierStatus& out, Tier tier, const ledger::TierReport& in) {
  out.set_tier(static_cast<v1::Tier>(tier));
  out.set_used_bytes(in.used_bytes);
  out.set_limit_bytes(in.limit_bytes);
  out.set_used_pages(in.used_pages);
  out.set_limit_pages(in.limit_pages);
  out.set_retention(in.retention);
  out.set_retention_h_s(in.h_s);
  out.set_retention_hits(in.hits);
  out.set_retention_misses(in.misses);
  out.set_admission(in.admission);
}

}  // namespace

void fill(v1::GetStatusResponse& out, const ledger::StatusReport& in) {
  for (size_t i = 0; i < in.slots.size(); ++i) {
    v1::Count& count = *out.add_slots();
    count.set_name(std::string(slot_state_name(static_cast<SlotState>(i))));
    count.set_value(in.slots[i]);
  }
  for (size_t i = 0; i < in.engines.size(); ++i) {
    v1::Count& count = *out.add_engines();
    count.set_name(std::string(engine_state_name(static_cast<EngineState>(i))));
    count.set_value(in.engines[i]);
  }
  fill(*out.add_tiers(), Tier::kDevice, in.device);
  fill(*out.add_tiers(), Tier::kHost, in.host);
  out.set_sessions(in.sessions);
  out.set_entries(in.entries);
  out.set_leases(in.leases);
  out.set_pinned_pages(in.pinned_pages);
  out.set_copies_in_flight(in.copies_in_flight);
  out.set_waiting_requests(in.waiting_requests);
}

namespace {

void fill_region(v1::RegionFigures& out, const ledger::RegionFigures& in) {
  out.set_name(in.name);
  out.set_b(in.b);
  out.set_half_life_tokens(in.half_life_tokens);
  out.set_pinned(in.pinned == ledger::RegionFigures::Pinned::kYes);
  out.set_evictions(in.evictions);
  out.set_regrets(in.regrets);
  out.set_idle_regrets(in.idle_regrets);
}

void fill_counts(google::protobuf::RepeatedPtrField<v1::Count>& out, const ledger::Ledger& ledger,
                 const char* name) {
  for (const auto& [label, value] : ledger::report_counts(ledger, name)) {
    v1::Count& count = *out.Add();
    count.set_name(label);
    count.set_value(value);
  }
}

}  // namespace

void fill_regrets(v1::GetStatusResponse& out, const ledger::Ledger& ledger) {
  const ledger::Figures figures = ledger::report_figures(ledger);
  out.set_regret_steps(figures.regret_steps);
  for (const ledger::RegionFigures& region : figures.regions) {
    if (region.evictions > 0) fill_region(*out.add_regions(), region);
  }
}

void fill(v1::GetFiguresResponse& out, const ledger::Ledger& ledger) {
  const ledger::Figures in = ledger::report_figures(ledger);
  const auto count = [&ledger](const char* name, const char* labels) {
    return ledger::report_count(ledger, name, labels);
  };
  out.set_policy(in.policy);
  out.set_regret_steps(in.regret_steps);
  out.set_regret_ms(in.regret.milliseconds());
  for (const ledger::RegionFigures& region : in.regions) fill_region(*out.add_regions(), region);
  out.set_thrashes(in.thrashes);
  out.set_restores_ok(count("restores_total", "source=host|outcome=ok"));
  out.set_restores_failed(count("restores_total", "source=host|outcome=failed"));
  out.set_pin_overflows(count("pin_overflow_total", ""));
  out.set_pin_budget_pages(in.pin_budget_pages);
  out.set_pages(in.pages);
  out.set_approximate_pages(in.approximate_pages);
  fill_counts(*out.mutable_lookups(), ledger, "lookups_total");
  out.set_asked(in.asked);
  out.set_late_answers(count("ack_late_total", ""));
  fill_counts(*out.mutable_skipped(), ledger, "evict_skipped_total");
  out.set_exhausted(count("errors_total", "code=resource_exhausted"));
  const ledger::StatusReport status = ledger::report_status(ledger);
  fill(*out.add_tiers(), Tier::kDevice, status.device);
  fill(*out.add_tiers(), Tier::kHost, status.host);
  out.set_host_dropped(count("host_dropped_total", ""));
  for (const auto& [reason, value] : ledger::report_counts(ledger, "store_rejected_total")) {
    out.set_store_rejected(out.store_rejected() + value);
  }
  out.set_lost_pages(count("pages_lost_total", ""));
}

void fill(v1::SessionInfo& out, const ledger::SessionReport& in) {
  out.set_session(in.session.value);
  out.set_name(in.name);
  out.set_tenant(in.tenant);
  out.set_engine(in.engine.value);
  out.set_state(static_cast<v1::SessionState>(in.state));
  out.set_mode(in.mode == Mode::kExact ? v1::MODE_EXACT : v1::MODE_LOSSY);
  out.set_policy(in.policy);
  for (const auto& [key, value] : in.policy_options) (*out.mutable_policy_options())[key] = value;
  out.set_priority(in.priority);
  out.set_budget_pages(in.budget_pages);
  out.set_pages(in.pages);
  out.set_resident_pages(in.resident_pages);
  out.set_hole_pages(in.hole_pages);
  out.set_dropped_pages(in.dropped_pages);
  out.set_approximate_pages(in.approximate_pages);
  out.set_position(in.position);
  out.set_step(in.step);
  out.set_ready(in.ready == ledger::SessionReport::Ready::kYes);
}

void fill(v1::PageInfo& out, const ledger::PageReport& in) {
  *out.mutable_view() = view_to_wire(in.view);
  out.set_on_device(in.where.device);
  out.set_on_host(in.where.host);
  out.set_quarantined(in.where.quarantined);
  for (const auto& [region, tokens] : in.regions) {
    v1::RegionTokens& wire = *out.add_regions();
    wire.set_region(region);
    wire.set_tokens(tokens);
  }
  out.set_score(in.score);
  out.set_key(in.key_hex);
  for (const Reason reason : in.spared) out.add_spared(static_cast<v1::Reason>(reason));
}

void fill(google::protobuf::RepeatedPtrField<v1::ScoreTerm>& out,
          const std::vector<std::pair<std::string, double>>& in) {
  for (const auto& [name, value] : in) {
    v1::ScoreTerm& term = *out.Add();
    term.set_name(name);
    term.set_value(value);
  }
}

void fill(v1::Decision& out, const ledger::DecisionReport& in, Instant now) {
  out.set_decision(in.decision.value);
  out.set_age_ms((now - in.when).milliseconds());
  out.set_kind(in.kind);
  out.set_session(in.session.value);
  out.set_page(in.page);
  out.set_reason(static_cast<v1::Reason>(in.reason));
  out.set_score(in.score);
  fill(*out.mutable_terms(), in.terms);
  out.set_pressure(in.pressure);
  out.set_first_spared(in.first_spared);
  out.set_saved_by(in.saved_by);
}

}  // namespace memdecay::server
