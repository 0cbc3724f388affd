// Room in the host tier (see contents.h): made before a page comes in, never after, of what would
// leave before it and serves no living session. A page that finds none is not admitted.
#include <vector>

#include "daemon/ledger/contents.h"
#include "daemon/ledger/decisions.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/ranks.h"
#include "proto/contract/check.h"

namespace memdecay::ledger {
namespace {

using retention::Visit;

bool fits(const State& state, const Content& content) {
  const Options& options = state.options;
  if (options.host_pages > 0) return state.host_used_pages + 1 <= options.host_pages;
  return state.host_used_bytes + host_page_bytes(content) <= options.host_bytes;
}

bool could_ever_fit(const State& state, const Content& content) {
  const Options& options = state.options;
  return options.host_pages > 0 || host_page_bytes(content) <= options.host_bytes;
}

bool over_limit(const State& state) {
  const Options& options = state.options;
  return options.host_pages > 0 ? state.host_used_pages > options.host_pages
                                : state.host_used_bytes > options.host_bytes;
}

// The first that leaves before the newcomer, which stands at `incoming`.
Content* first_before(const State& state, const Rank& incoming) {
  Content* victim = nullptr;
  const Duration h = tier_h(state, Held::kHost);
  state.host_order.visit(h, [&](const Rank& candidate) {
    if (candidate.klass > kOfEnded) return Visit::kEnough;
    if (!retention::leaves_before(candidate, incoming, h)) return Visit::kEnough;
    Content* held = state.contents.at(ContentId{candidate.name}).get();
    if (held->copy) return Visit::kGoOn;  // a copy that reads it keeps it
    victim = held;
    return Visit::kEnough;
  });
  return victim;
}

void drop_for_room(Context& context, Content& content, std::string_view pressure) {
  record_drop(context, content, pressure);
  drop_host_replica(context, content);
  count(context.state, "host_dropped_total");
  if (!has_bytes(content)) lose(context, content);
}

}  // namespace

bool host_tier_exists(const State& state) {
  return state.options.host_pages > 0 || state.options.host_bytes > 0;
}

uint64_t host_page_bytes(const Content& content) { return content.layout.page_bytes; }

void drop_host_replica(Context& context, Content& content) {
  State& state = context.state;
  MEMDECAY_CHECK(content.host != HostState::kNone);
  content.host = HostState::kNone;
  --state.host_used_pages;
  state.host_used_bytes -= host_page_bytes(content);
  context.out.emplace_back(DropHost{content.id});
  refresh_ranks(state, content);
}

HostRoom make_host_room(Context& context, const Content& content) {
  State& state = context.state;
  if (!host_tier_exists(state) || !could_ever_fit(state, content)) return HostRoom::kFull;
  const Rank incoming = rank_below(state, content);
  if (incoming.klass == kWorthless) return HostRoom::kNotWorthIt;
  while (!fits(state, content)) {
    Content* const victim = first_before(state, incoming);
    if (victim == nullptr) return HostRoom::kFull;
    drop_for_room(context, *victim, "room for another page in the host tier");
  }
  return HostRoom::kMade;
}

std::vector<ContentId> host_leaving_order(const State& state) {
  std::vector<ContentId> order;
  state.host_order.visit(tier_h(state, Held::kHost), [&order](const Rank& rank) {
    order.push_back(ContentId{rank.name});
    return Visit::kGoOn;
  });
  return order;
}

void trim_host(Context& context) {
  State& state = context.state;
  if (!over_limit(state)) return;
  for (const ContentId id : host_leaving_order(state)) {
    if (!over_limit(state)) return;
    Content* content = find_content(state, id);
    if (content == nullptr || content->host != HostState::kValid || content->copy) continue;
    drop_for_room(context, *content, "the host tier's limit was lowered");
  }
}

void forget_cached(Context& context, absl::FunctionRef<bool()> enough) {
  State& state = context.state;
  for (const ContentId id : host_leaving_order(state)) {
    if (enough()) return;
    Content* content = find_content(state, id);
    if (content == nullptr || content->copy || content->leases > 0) continue;
    // Marks forget what is cached, never a session's only copy.
    if (!content->slot_valid && !content->views.empty()) continue;
    drop_for_room(context, *content, "host tier above its high mark");
  }
}

}  // namespace memdecay::ledger
