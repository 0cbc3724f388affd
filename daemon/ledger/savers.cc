// See savers.h.
#include "daemon/ledger/savers.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/ledger/pages.h"
#include "proto/contract/text.h"

namespace memdecay::ledger {
namespace {

std::optional<double> term(const Terms& terms, std::string_view name) {
  for (const auto& [known, value] : terms) {
    if (known == name) return value;
  }
  return std::nullopt;
}

// A value that is enough when it is read back: rounded up to three significant digits.
std::string at_least(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return absl::StrFormat("%.4g", std::ceil(value / unit * (1 - 1e-12)) * unit);
}

std::string region_text(RegionId region) {
  return region < kBuiltInRegions ? std::string(region_name(region))
                                  : absl::StrCat("region ", region);
}

// The region that a mixed page's b is from, and the one that its half-life is from.
struct Leads {
  RegionId b = 0;
  RegionId half_life = 0;
};
Leads leads_of(const Session& session, PageIndex page) {
  const auto& regions = session.policy->options().regions;
  Leads leads;
  bool first = true;
  for (const policy::RegionRun& run : region_runs(session, page)) {
    if (first || regions.at(run.region).b > regions.at(leads.b).b) leads.b = run.region;
    if (first || regions.at(run.region).half_life > regions.at(leads.half_life).half_life) {
      leads.half_life = run.region;
    }
    first = false;
  }
  return leads;
}

void append_parameters(const Session& session, PageIndex page, const Growth& growth,
                       std::string& text) {
  const auto& regions = session.policy->options().regions;
  if (regions.empty()) return;
  const Leads leads = leads_of(session, page);
  const auto append = [&text](const char* key, RegionId region, double now, double factor) {
    absl::StrAppend(&text, ", ", key, " of ", region_text(region), " >= ", at_least(now * factor),
                    absl::StrFormat(" (now %.4g)", now));
  };
  const double b = regions.at(leads.b).b;
  const double half_life = regions.at(leads.half_life).half_life;
  if (growth.b.has_value()) append("b", leads.b, b, *growth.b);
  if (growth.half_life.has_value() && std::isfinite(half_life)) {
    append("half_life", leads.half_life, half_life, *growth.half_life);
  }
}

}  // namespace

Growth growth_for(const Terms& terms, double more) {
  Growth growth;
  const auto base = term(terms, "base");
  const auto decay = term(terms, "decay");
  if (base.has_value() && decay.has_value()) {
    growth.b = std::exp2(more);
    const double allowed = *decay + more;  // both are negative or 0
    if (*decay < 0 && allowed < 0) growth.half_life = *decay / allowed;
    return growth;
  }
  const auto decayed = term(terms, "decayed_base");
  if (decayed.has_value() && *decayed > 0) growth.b = (*decayed + more) / *decayed;
  return growth;
}

std::string saved_by(const State& state, const Victim& victim, const Spared& spared,
                     const Terms& terms) {
  if (!victim.by.has_value()) return "a session that refers to it, or a lease";
  const Session& session = *state.sessions.at(victim.by->session);
  std::string text = "a pin";
  if (spared.score.has_value() && *spared.score >= victim.score) {
    const double more = *spared.score - victim.score;
    absl::StrAppendFormat(&text, "; a score of %.4g, %.3g more", *spared.score, more);
    append_parameters(session, victim.by->page, growth_for(terms, more), text);
  }
  const bool own_budget = victim.reason == Reason::kBudget;
  if (victim.room > 0) {
    absl::StrAppend(&text, "; ", own_budget ? "budget" : "device", " + ", victim.room,
                    victim.room == 1 ? " page" : " pages", " (now ",
                    own_budget ? session.budget_pages : state.options.device_pages, ")");
  }
  if (!is_running(session)) absl::StrAppend(&text, "; a higher priority; a session that computes");
  return text;
}

}  // namespace memdecay::ledger
