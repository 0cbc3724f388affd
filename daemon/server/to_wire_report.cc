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

void fill(v1::SessionInfo& out, const ledger::SessionReport& in) {
  out.set_session(in.session.value);
  out.set_name(in.name);
  out.set_tenant(in.tenant);
  out.set_engine(in.engine.value);
  out.set_state(static_cast<v1::SessionState>(in.state));
  out.set_mode(in.mode == Mode::kExact ? v1::MODE_EXACT : v1::MODE_LOSSY);
  out.set_policy(in.policy);
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
