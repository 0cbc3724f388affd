// How a page leaves the device (see leave.h).
#include "daemon/ledger/leave.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/copies.h"
#include "daemon/ledger/decisions.h"
#include "daemon/ledger/lives.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/regret.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/check.h"
#include "proto/contract/text.h"

namespace memdecay::ledger {
namespace {

using Asked = absl::btree_map<SessionId, EvictNotice>;

void ask(Context& context, ViewRef ref, const Victim& victim, DecisionId decision, Asked& asked) {
  State& state = context.state;
  Session& session = *state.sessions.at(ref.session);
  View& view = session.pages.at(ref.page);
  view.decision = decision;
  view.left_idle = !is_running(session);
  note_left(context, ref, victim.reason);
  if (!must_ask(state, session)) {
    give_up(context, ref, {}, {});
    return;
  }
  set_page_state(state, ref, PageState::kAsked);
  ++state.tallies.asked;
  view.ask_due =
      set_timer(context, Timer::Kind::kAsk, state.options.ack_late, ref.session.value, ref.page);
  EvictNotice& notice = asked[ref.session];
  if (notice.pages.empty()) notice.decision = decision;
  notice.pages.emplace_back(ref.page, victim.reason);
}

void tell_released(Context& context, const Session& session, PageIndex page, const SlotRef& slot) {
  notify(context, session.engine, session.id, ReleasedNotice{{{page, slot}}});
}

// The content's bytes have left the device; pages that showed it are holes.
void left(Context& context, Content& content) {
  State& state = context.state;
  const SlotRef slot = *content.slot;
  content.slot.reset();
  content.slot_valid = false;
  content.leaving = false;
  state.leaving.erase(content.id);
  free_slot(context, slot);
  count(state, "evictions_done_total");
  for (const ViewRef& ref : content.views) {
    // Pages of sessions that no engine holds were never given up by anybody.
    if (is_mapped(view_of(state, ref).state)) set_page_state(state, ref, PageState::kGivenUp);
    if (view_of(state, ref).state != PageState::kGivenUp) continue;
    set_page_state(state, ref, PageState::kHole);
    tell_released(context, *state.sessions.at(ref.session), ref.page, slot);
  }
  return_block(context, content, slot);
  refresh_ranks(state, content);
}

bool of_living_session(const State& state, const Content& content) {
  return std::any_of(content.views.begin(), content.views.end(), [&state](const ViewRef& ref) {
    return static_cast<bool>(state.sessions.at(ref.session)->engine);
  });
}

// Somebody maps it who was not asked for it.
bool still_wanted(const State& state, const Content& content) {
  return std::any_of(content.views.begin(), content.views.end(), [&state](const ViewRef& ref) {
    const PageState page = view_of(state, ref).state;
    return page == PageState::kMapped || page == PageState::kRestoring;
  });
}

// A tier that fails is not asked again at once: that would never come to rest.
void try_again_later(Context& context, Content& content) {
  constexpr Duration kPause = Duration::from_milliseconds(500);
  if (content.store_failed) return;
  content.store_failed = true;
  set_timer(context, Timer::Kind::kStoreAgain, kPause, content.id.value);
}

void forget_bytes(Context& context, Content& content, std::string_view why) {
  State& state = context.state;
  count(state, "store_rejected_total", absl::StrCat("reason=", as_absl(why)));
  left(context, content);
  if (!has_bytes(content)) lose(context, content);
}

enum class Spoilt : uint8_t { kHasCopy, kGone };

// The page's slot holds other bytes than were sealed: its engine unmaps it, an exact session stops
// until it has the page from below.
void condemn_view(Context& context, ViewRef ref, Spoilt spoilt) {
  State& state = context.state;
  Session& session = *state.sessions.at(ref.session);
  View& view = session.pages.at(ref.page);
  view.fences = 0;
  const bool shown = is_mapped(view.state) || view.announced;
  if (is_mapped(view.state)) set_page_state(state, ref, PageState::kGivenUp);
  if (view.state == PageState::kGivenUp || view.state == PageState::kRestoring) {
    set_page_state(state, ref, PageState::kHole);
  }
  if (spoilt == Spoilt::kGone) return;  // dropped next, and told so
  view.op = {};
  for (const OpId op : ops_with(state, ref)) {
    op_page_failed(context, op, ref.page, ErrorCode::kDataLoss);
  }
  if (!shown || !session.engine) return;
  notify(context, session.engine, ref.session, FailedNotice{ref.page, ErrorCode::kDataLoss});
  notify(context, session.engine, ref.session,
         EvictNotice{record(context, "evict", ref, Reason::kAdmin), {{ref.page, Reason::kAdmin}}});
  if (session.mode == Mode::kExact && is_running(session) && !session.wake) wake(context, session);
}

}  // namespace

bool watch(Context& context, EngineId engine, const Fence& fence, FenceWatch what) {
  if (!engine || fence.value == 0) return false;
  auto& watches = context.state.fences[{engine, fence}];
  if (watches.empty()) context.out.emplace_back(WatchFence{engine, fence});
  watches.push_back(std::move(what));
  return true;
}

void begin_leaving(Context& context, std::vector<Victim> victims, const std::string& pressure,
                   const Spared& spared) {
  State& state = context.state;
  // The root takes its room below before the leaf: what does not fit then is the end of a chain.
  std::stable_sort(victims.begin(), victims.end(), [&state](const Victim& a, const Victim& b) {
    return state.contents.at(a.content)->page < state.contents.at(b.content)->page;
  });
  Asked asked;
  for (const Victim& victim : victims) {
    Content* content = find_content(state, victim.content);
    if (content == nullptr) continue;
    const DecisionId decision = record_eviction(context, *content, victim, pressure, spared);
    const auto views = content->views;
    for (const ViewRef& ref : views) {
      if (victim.view.has_value() && *victim.view != ref) continue;
      if (view_of(state, ref).state == PageState::kMapped) {
        ask(context, ref, victim, decision, asked);
      }
    }
    content = find_content(state, victim.content);
    if (content == nullptr || !content->slot_valid) continue;
    if (!victim.view.has_value() || mapping_views(state, *content) <= 1) {
      content->leaving = true;
      state.leaving.insert(content->id);
      refresh_ranks(state, *content);
      progress_leaving(context, *content);
    }
  }
  for (auto& [session, notice] : asked) {
    notify(context, state.sessions.at(session)->engine, session, std::move(notice));
  }
}

void give_up(Context& context, ViewRef ref, EngineId engine, const Fence& fence) {
  State& state = context.state;
  View& view = view_of(state, ref);
  Content& content = *state.contents.at(view.content);
  set_page_state(state, ref, PageState::kGivenUp);
  if (watch(context, engine, fence, {FenceWatch::Why::kGiveUp, ref, content.id, {}})) {
    ++view.fences;
    ++content.open_fences;
  }
  if (content.open_fences > 0) {  // a fence that stays open: others are asked then
    view.ask_due =
        set_timer(context, Timer::Kind::kAsk, state.options.ack_late, ref.session.value, ref.page);
  }
  progress_leaving(context, content);
}

void progress_leaving(Context& context, Content& content) {
  State& state = context.state;
  // Views that are through while others still map the slot are holes at once.
  const bool shared = mapping_views(state, content) > 0;
  for (const ViewRef& ref : content.views) {
    const View& view = view_of(state, ref);
    if (!shared || view.state != PageState::kGivenUp || view.fences > 0) continue;
    set_page_state(state, ref, PageState::kHole);
    tell_released(context, *state.sessions.at(ref.session), ref.page, *content.slot);
  }
  if (shared && content.leaving && still_wanted(state, content)) stay(context, content);
  if (shared || content.copy || content.open_fences > 0 || !content.slot_valid) return;
  const bool given_up = std::any_of(
      content.views.begin(), content.views.end(),
      [&state](const ViewRef& ref) { return view_of(state, ref).state == PageState::kGivenUp; });
  if (!content.leaving && !given_up) return;
  const SlotRef slot = *content.slot;
  if (content.host == HostState::kValid) {
    left(context, content);
    return;
  }
  if (content.views.empty() && !content.indexed) {
    discard(context, content);
    return;
  }
  const HostRoom room = make_host_room(context, content);
  if (room != HostRoom::kMade) {
    forget_bytes(context, content, room == HostRoom::kFull ? "full" : "admission");
    return;
  }
  content.leaving = true;
  state.leaving.insert(content.id);
  set_slot_state(context, slot, SlotState::kCopyingOut);
  start_copy(context, content, CopyKind::kEvict, {});
}

void evict_copied(Context& context, Content& content, const absl::Status& status) {
  State& state = context.state;
  const SlotRef slot = *content.slot;
  if (status.ok()) {
    content.host = HostState::kValid;
    left(context, content);
    return;
  }
  if (content.host != HostState::kNone) drop_host_replica(context, content);
  const bool cached = content.views.empty() || error_code(status) == ErrorCode::kDeadline;
  if (cached && !of_living_session(state, content)) {  // not worth a second attempt
    forget_bytes(context, content, "backpressure");
    return;
  }
  set_slot_state(context, slot, SlotState::kValid);
  try_again_later(context, content);
  stay(context, content);
  for (const ViewRef& ref : content.views) {
    if (view_of(state, ref).state != PageState::kGivenUp) continue;
    set_page_state(state, ref, PageState::kHole);  // still on the device: it can be mapped again
  }
  refresh_ranks(state, content);
}

void store_ahead(Context& context, Content& content) {
  if (make_host_room(context, content) != HostRoom::kMade) return;
  start_copy(context, content, CopyKind::kStore, {});
}

void store_copied(Context& context, Content& content, const absl::Status& status) {
  if (status.ok()) {
    content.host = HostState::kValid;
    refresh_ranks(context.state, content);
  } else {
    if (content.host != HostState::kNone) drop_host_replica(context, content);
    try_again_later(context, content);
  }
  progress_leaving(context, content);
}

void condemn_device_replica(Context& context, Content& content) {
  State& state = context.state;
  const SlotRef slot = *content.slot;
  count(state, "checksum_failures_total", "tier=device");
  const Engine* writer = find_engine(state, find_slot(state, slot)->writer);
  const bool may_write = writer != nullptr && writer->state != EngineState::kDead;
  watches_to_slot(state, content.id, slot);
  quarantine_slot(context, slot, may_write ? writer->id : EngineId{}, {},
                  std::exchange(content.open_fences, 0));
  content.slot.reset();
  content.slot_valid = false;
  stay(context, content);
  const bool elsewhere = has_bytes(content);
  const auto views = content.views;
  for (const ViewRef& ref : views)
    condemn_view(context, ref, elsewhere ? Spoilt::kHasCopy : Spoilt::kGone);
  if (!elsewhere) lose(context, content);
}

void stay(Context& context, Content& content) {
  content.leaving = false;
  context.state.leaving.erase(content.id);
  refresh_ranks(context.state, content);
}

}  // namespace memdecay::ledger
