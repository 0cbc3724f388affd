// Regions of a session's tokens: runs over positions, the later tag wins per token, and may reach
// beyond the end (see pages.h).
#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "daemon/ledger/pages.h"

namespace memdecay::ledger {
namespace {

RegionId region_at(const Session& session, uint32_t position) {
  RegionId region = session.default_region;
  for (const auto& [begin, of] : session.tags) {
    if (begin > position) break;
    region = of;
  }
  return region;
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

void set_region(Session& session, Span span, RegionId region) {
  if (span.begin >= span.end) return;
  const RegionId after = region_at(session, span.end);
  auto& tags = session.tags;
  std::erase_if(tags, [span](const auto& run) {
    return run.first >= span.begin && run.first <= span.end;
  });
  tags.emplace_back(span.begin, region);
  tags.emplace_back(span.end, after);
  std::sort(tags.begin(), tags.end());
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
  RegionId region = session.default_region;
  uint32_t at = begin;
  for (const auto& [from, next] : session.tags) {
    if (from >= end) break;
    if (from > at) {
      add(region, from - at);
      at = from;
    }
    region = next;
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
  for (const AtomicSpan& span : session.atomics) {
    if (span.begin < (page + 1) * tokens && span.end > page * tokens) {
      return std::make_pair(span.begin / tokens, (span.end - 1) / tokens);
    }
  }
  return std::nullopt;
}

}  // namespace memdecay::ledger
