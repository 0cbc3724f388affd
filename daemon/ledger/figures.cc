// What decisions have come to (see report.h): tallies and counters, beside what is configured.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/ledger/report.h"
#include "daemon/ledger/state.h"

namespace memdecay::ledger {
namespace {

bool pins(const policy::PolicyOptions& options, RegionId region) {
  if (!options.pinned.has_value()) return false;
  return std::find(options.pinned->begin(), options.pinned->end(), region) != options.pinned->end();
}

RegionFigures figures_of(const State& state, const policy::PolicyOptions& options,
                         RegionId region) {
  const policy::RegionParameters& parameters = options.regions.at(region);
  using Pinned = RegionFigures::Pinned;
  RegionFigures out{.name = region < kBuiltInRegions ? std::string(region_name(region))
                                                     : absl::StrCat("custom_", region),
                    .b = parameters.b,
                    .half_life_tokens = parameters.half_life,
                    .pinned = pins(options, region) ? Pinned::kYes : Pinned::kNo};
  const auto tally = state.tallies.regions.find(region);
  if (tally == state.tallies.regions.end()) return out;
  out.evictions = tally->second.evictions;
  out.regrets = tally->second.regrets;
  out.idle_regrets = tally->second.idle_regrets;
  return out;
}

// The options as a policy that was made has them: defaults filled in.
policy::PolicyOptions resolved(const policy::PolicyOptions& options) {
  const auto made = policy::make_policy(options);
  policy::PolicyOptions out = made.ok() ? (*made)->options() : options;
  if (out.regions.empty()) out.regions = policy::default_regions();
  return out;
}

}  // namespace

Figures report_figures(const Ledger& ledger) {
  const State& state = ledger.state();
  const policy::PolicyOptions options = resolved(state.options.policy);
  Figures figures{.policy = options.name,
                  .thrashes = state.tallies.thrashes,
                  .asked = state.tallies.asked,
                  .regret_steps = state.options.regret_steps,
                  .regret = state.options.regret,
                  .pin_budget_pages = state.options.pin_budget_pages};
  for (size_t region = 0; region < options.regions.size(); ++region) {
    figures.regions.push_back(figures_of(state, options, static_cast<RegionId>(region)));
  }
  for (const auto& [id, session] : state.sessions) {
    figures.pages += session->pages.size();
    figures.approximate_pages += static_cast<uint64_t>(std::count_if(
        session->pages.begin(), session->pages.end(),
        [](const View& view) { return view.exactness == PageView::Exactness::kApproximate; }));
  }
  return figures;
}

uint64_t report_count(const Ledger& ledger, const std::string& name, const std::string& labels) {
  const auto& values = ledger.state().counters.values;
  const auto found = values.find(labels.empty() ? name : absl::StrCat(name, "|", labels));
  return found == values.end() ? 0 : static_cast<uint64_t>(found->second);
}

std::vector<std::pair<std::string, uint64_t>> report_counts(const Ledger& ledger,
                                                            const std::string& name) {
  std::vector<std::pair<std::string, uint64_t>> counts;
  const std::string prefix = absl::StrCat(name, "|");
  const auto& values = ledger.state().counters.values;
  for (auto it = values.lower_bound(prefix);
       it != values.end() && absl::StartsWith(it->first, prefix); ++it) {
    counts.emplace_back(it->first.substr(it->first.find('=') + 1),
                        static_cast<uint64_t>(it->second));
  }
  return counts;
}

}  // namespace memdecay::ledger
