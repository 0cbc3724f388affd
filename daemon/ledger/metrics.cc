// Metric samples with the names of the vocabulary (see report.h): gauges are read from the tables,
// counters were counted where things happened.
#include <array>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/ledger/context.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/report.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

Labels parse_labels(const std::vector<std::string>& parts) {
  Labels labels;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::vector<std::string> pair = absl::StrSplit(parts[i], '=');
    labels.emplace_back(pair.at(0), pair.at(1));
  }
  return labels;
}

void add_pages(const State& state, std::vector<Sample>& samples) {
  absl::btree_map<std::pair<std::string, std::string>, double> pages;
  absl::btree_map<std::pair<std::string, std::string>, double> sessions;
  double approximate = 0;
  for (const auto& [id, session] : state.sessions) {
    const std::string tenant = state.tenants.at(session->tenant).options.name;
    sessions[{std::string(session_state_name(session->state)),
              std::string(mode_name(session->mode))}] += 1;
    for (const View& view : session->pages) {
      pages[{std::string(page_state_name(view.state)), tenant}] += 1;
      approximate += view.exactness == PageView::Exactness::kApproximate;
    }
  }
  for (const auto& [key, value] : pages) {
    samples.push_back({"pages", {{"state", key.first}, {"tenant", key.second}}, value});
  }
  for (const auto& [key, value] : sessions) {
    samples.push_back({"sessions", {{"state", key.first}, {"mode", key.second}}, value});
  }
  samples.push_back({"pages_approximate", {}, approximate});
}

void add_tiers(const Ledger& ledger, std::vector<Sample>& samples) {
  const StatusReport status = report_status(ledger);
  const State& state = ledger.state();
  for (int i = 0; i < kSlotStates; ++i) {
    const auto slot = static_cast<SlotState>(i);
    samples.push_back({"device_slots",
                       {{"state", std::string(slot_state_name(slot))}},
                       static_cast<double>(status.slots[static_cast<size_t>(i)])});
  }
  uint32_t retiring = 0;
  for (const auto& [id, slab] : state.slabs) {
    retiring += slab.life == Slab::Life::kRetiring ? static_cast<uint32_t>(slab.slots.size()) : 0;
  }
  samples.push_back({"device_slots", {{"state", "retiring"}}, static_cast<double>(retiring)});
  const auto tier = [&samples](const char* name, const TierReport& report) {
    samples.push_back({"tier_bytes", {{"tier", name}}, static_cast<double>(report.used_bytes)});
    samples.push_back(
        {"tier_limit_bytes", {{"tier", name}}, static_cast<double>(report.limit_bytes)});
    samples.push_back({"tier_pages", {{"tier", name}}, static_cast<double>(report.used_pages)});
    samples.push_back(
        {"tier_limit_pages", {{"tier", name}}, static_cast<double>(report.limit_pages)});
    samples.push_back({"retention_h_seconds", {{"tier", name}}, report.h_s});
  };
  tier("device", status.device);
  tier("host", status.host);
  for (int i = 0; i < kEngineStates; ++i) {
    const auto engine = static_cast<EngineState>(i);
    samples.push_back({"engines",
                       {{"state", std::string(engine_state_name(engine))}},
                       static_cast<double>(status.engines[static_cast<size_t>(i)])});
  }
  uint64_t leased = 0;
  for (const auto& [id, lease] : state.leases) leased += lease.contents.size();
  samples.push_back({"leases", {}, static_cast<double>(status.leases)});
  samples.push_back({"leased_pages", {}, static_cast<double>(leased)});
  samples.push_back({"pins_pages", {}, static_cast<double>(status.pinned_pages)});
  samples.push_back(
      {"quarantined_slots",
       {},
       static_cast<double>(status.slots[static_cast<size_t>(SlotState::kQuarantined)])});
  samples.push_back({"entries", {}, static_cast<double>(status.entries)});
  samples.push_back({"copies_in_flight", {}, static_cast<double>(status.copies_in_flight)});
  samples.push_back({"waiting_requests", {}, static_cast<double>(status.waiting_requests)});
  samples.push_back({"slabs", {}, static_cast<double>(state.slabs.size())});
}

void add_tenants(const State& state, std::vector<Sample>& samples) {
  for (const auto& [id, tenant] : state.tenants) {
    const Labels labels = {{"tenant", tenant.options.name}};
    samples.push_back({"tenant_slots", labels, static_cast<double>(tenant.used)});
    samples.push_back(
        {"tenant_reservation_pages", labels, static_cast<double>(tenant.reservation_pages)});
  }
}

}  // namespace

std::vector<Sample> report_metrics(const Ledger& ledger) {
  std::vector<Sample> samples;
  add_pages(ledger.state(), samples);
  add_tiers(ledger, samples);
  add_tenants(ledger.state(), samples);
  for (const auto& [key, value] : ledger.state().counters.values) {
    const std::vector<std::string> parts = absl::StrSplit(key, '|');
    samples.push_back({parts.front(), parse_labels(parts), value});
  }
  return samples;
}

}  // namespace memdecay::ledger
