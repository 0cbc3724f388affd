// Regions of a session's tokens: runs over positions, the later tag wins per token, and may reach
// beyond the end (see pages.h).
#include <algorithm>
#include <iterator>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "daemon/ledger/pages.h"

namespace memdecay::ledger {
namespace {

using Run = std::pair<uint32_t, RegionId>;

// The first run that begins after `position`.
std::vector<Run>::const_iterator run_after(const Session& session, uint32_t position) {
  return std::upper_bound(session.tags.begin(), session.tags.end(), position,
                          [](uint32_t at, const Run& run) { return at < run.first; });
}

RegionId region_at(const Session& session, uint32_t position) {
  const auto after = run_after(session, position);
  return after == session.tags.begin() ? session.default_region : std::prev(after)->second;
}

// Region-protected pages that the pin budget carries.
bool over_pin_budget(const State& state, const Session& session, PageIndex page) {
  const uint32_t limit = state.options.pin_budget_pages;
  if (limit == 0) return false;
  uint32_t held = state.tenants.at(session.tenant).pins;
  for (PageIndex other = 0; other < session.sealed_pages; ++other) {
    held += other != page && session.policy->protection(other) == policy::Protection::kRegion;
  }
  return held >= limit;
}

}  // namespace

absl::Status check_region(const policy::Policy& policy, RegionId region) {
  const size_t known = policy.options().known_regions();
  if (region < known) return absl::OkStatus();
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("region ", region),
                    absl::StrCat("there are ", known, " regions"),
                    "define it in policy.own_regions or use a built-in one");
}

const policy::PolicyOptions& policy_options(const State& state, TenantId tenant) {
  const auto found = state.tenants.find(tenant);
  const bool own = found != state.tenants.end() && found->second.options.policy.has_value();
  return own ? *found->second.options.policy : state.options.policy;
}

void set_region(Session& session, Span span, RegionId region) {
  if (span.begin >= span.end) return;
  const RegionId after = region_at(session, span.end);
  auto& tags = session.tags;
  const auto from = std::lower_bound(tags.begin(), tags.end(), Run{span.begin, 0});
  auto until = from;
  while (until != tags.end() && until->first <= span.end) ++until;
  const auto at = tags.erase(from, until);
  const Run runs[] = {{span.begin, region}, {span.end, after}};
  tags.insert(at, std::begin(runs), std::end(runs));
}

std::vector<policy::RegionRun> region_runs(const Session& session, PageIndex page) {
  const uint32_t begin = page * session.layout.page_tokens;
  const uint32_t end = begin + session.layout.page_tokens;
  std::vector<policy::RegionRun> runs;
  const auto add = [&runs](RegionId region, uint32_t tokens) {
    if (tokens == 0) return;
    if (!runs.empty() && runs.back().region == region) {
      runs.back().tokens = static_cast<uint16_t>(runs.back().tokens + tokens);
    } else {
      runs.push_back({region, static_cast<uint16_t>(tokens)});
    }
  };
  RegionId region = region_at(session, begin);
  uint32_t at = begin;
  for (auto run = run_after(session, begin); run != session.tags.end() && run->first < end; ++run) {
    add(region, run->first - at);
    at = run->first;
    region = run->second;
  }
  add(region, end - at);
  return runs;
}

RegionId main_region(const Session& session, PageIndex page) {
  const auto runs = region_runs(session, page);
  absl::InlinedVector<uint32_t, 8> tokens;
  RegionId best = session.default_region;
  uint32_t most = 0;
  for (const auto& run : runs) {
    uint32_t total = 0;
    for (const auto& other : runs) total += other.region == run.region ? other.tokens : 0;
    if (total > most) {
      most = total;
      best = run.region;
    }
  }
  return best;
}

void tell_regions(Context& context, Session& session, PageIndex page) {
  const auto runs = region_runs(session, page);
  session.policy->on_retag(page, runs);
  if (Content* content = find_content(context.state, session.pages.at(page).content)) {
    content->region = main_region(session, page);
  }
  if (session.policy->protection(page) != policy::Protection::kRegion) return;
  if (!over_pin_budget(context.state, session, page)) return;
  session.policy->on_soften(page);
  count(context.state, "pin_overflow_total");
}

std::optional<std::pair<PageIndex, PageIndex>> atomic_pages(const Session& session,
                                                            PageIndex page) {
  const uint32_t tokens = session.layout.page_tokens;
  PageIndex first = page;
  PageIndex last = page;
  bool covered = false;
  // Spans that share a page leave together: grow until no span reaches further.
  for (bool grew = true; grew;) {
    grew = false;
    for (const AtomicSpan& span : session.atomics) {
      const PageIndex begin = span.begin / tokens;
      const PageIndex end = (span.end - 1) / tokens;
      if (begin > last || end < first) continue;
      covered = true;
      grew |= begin < first || end > last;
      first = std::min(first, begin);
      last = std::max(last, end);
    }
  }
  if (!covered) return std::nullopt;
  return std::make_pair(first, last);
}

}  // namespace memdecay::ledger
