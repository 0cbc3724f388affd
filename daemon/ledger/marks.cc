// Budgets, watermarks, retiring slabs, copies ahead of need (see marks.h).
#include "daemon/ledger/marks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/choose.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

// Copies ahead of need that may be in flight: they must not hold up what is needed now.
constexpr size_t kAheadInFlight = 4;

void trim_budgets(Context& context) {
  for (auto& [id, session] : context.state.sessions) {
    if (!session->over_budget) continue;
    const int64_t over = static_cast<int64_t>(occupancy(*session)) - session->budget_pages;
    session->over_budget = over > 0 && session->budget_pages > 0;
    const int64_t missing = over - views_leaving(*session);
    if (!session->over_budget || missing <= 0) continue;
    const Choice choice = choose(
        context.state, {Scope::kSession, session->tenant, id, static_cast<uint32_t>(missing)});
    begin_leaving(context, choice.victims, absl::StrCat("budget passed by ", over, " pages"),
                  choice.spared);
  }
}

void keep_device_mark(Context& context) {
  State& state = context.state;
  const Options& options = state.options;
  if (options.watermark_high_percent >= 100) return;
  const uint64_t capacity = options.device_pages;
  if (uint64_t{state.used_slots} * 100 <= capacity * options.watermark_high_percent) return;
  const int64_t low = static_cast<int64_t>(capacity * options.watermark_low_percent / 100);
  const int64_t missing = int64_t{state.used_slots} - low - slots_leaving(state);
  if (missing <= 0) return;
  const Choice choice = choose(state, {Scope::kPool, {}, {}, static_cast<uint32_t>(missing)});
  begin_leaving(context, choice.victims, "device tier above its high mark", choice.spared);
}

void keep_host_mark(Context& context) {
  State& state = context.state;
  const Options& options = state.options;
  if (options.watermark_high_percent >= 100) return;
  const uint64_t limit = options.host_pages > 0 ? options.host_pages : options.host_bytes;
  const auto used = [&] {
    return options.host_pages > 0 ? uint64_t{state.host_used_pages} : state.host_used_bytes;
  };
  if (limit == 0 || used() * 100 <= limit * options.watermark_high_percent) return;
  const uint64_t low = limit * options.watermark_low_percent / 100;
  forget_cached(context, [&] { return used() <= low; });
}

bool may_go(const State& state, const Content& content) {
  if (!content.slot_valid || content.leaving || content.copy || content.leases > 0) return false;
  if (content.store_failed) return false;
  return std::all_of(content.views.begin(), content.views.end(), [&state](const ViewRef& ref) {
    const PageState page = view_of(state, ref).state;
    if (page == PageState::kHole) return true;
    return page == PageState::kMapped && spare_reasons(state, ref, Scope::kPool).empty();
  });
}

void empty_retiring(Context& context) {
  State& state = context.state;
  if (state.retiring_pages == 0) return;
  std::vector<Victim> victims;
  for (const auto& [id, slab] : state.slabs) {
    if (slab.life != Slab::Life::kRetiring) continue;
    for (const Slot& slot : slab.slots) {
      const Content* content = find_content(state, slot.content);
      if (content == nullptr || !may_go(state, *content)) continue;
      victims.push_back({.content = content->id, .reason = Reason::kAdmin});
      if (!content->views.empty()) victims.back().by = content->views.front();
    }
  }
  begin_leaving(context, victims, "its slab is being retired", {});
}

// A copy ahead of need takes free room only, and leaves the tier under its high mark.
bool room_ahead(const State& state, const Content& content) {
  const Options& options = state.options;
  const uint64_t limit = options.host_pages > 0 ? options.host_pages : options.host_bytes;
  const uint64_t after = options.host_pages > 0 ? uint64_t{state.host_used_pages} + 1
                                                : state.host_used_bytes + host_page_bytes(content);
  return after <= limit && after * 100 <= limit * options.watermark_high_percent;
}

void clean_ahead(Context& context) {
  State& state = context.state;
  if (state.options.ahead == 0 || !host_tier_exists(state)) return;
  size_t flying = 0;
  for (const auto& [id, copy] : state.copies) flying += copy.what.kind == CopyKind::kStore;
  if (flying >= kAheadInFlight) return;
  const Choice likely = choose(state, {Scope::kPool, {}, {}, state.options.ahead});
  for (const Victim& victim : likely.victims) {
    Content& content = *state.contents.at(victim.content);
    if (content.host != HostState::kNone || content.copy || !content.slot_valid) continue;
    if (content.views.empty() && !content.indexed) continue;
    if (!room_ahead(state, content)) return;
    store_ahead(context, content);
    if (++flying >= kAheadInFlight) return;
  }
}

}  // namespace

void keep_marks(Context& context) {
  trim_budgets(context);
  empty_retiring(context);
  keep_device_mark(context);
  keep_host_mark(context);
  clean_ahead(context);
}

}  // namespace memdecay::ledger
