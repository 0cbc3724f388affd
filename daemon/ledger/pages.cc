// A session's pages (see pages.h). Regions of tokens are in regions.cc.
#include "daemon/ledger/pages.h"

#include <algorithm>

#include "daemon/ledger/contents.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/check.h"

namespace memdecay::ledger {

const View& view_of(const State& state, ViewRef ref) {
  return state.sessions.at(ref.session)->pages.at(ref.page);
}
View& view_of(State& state, ViewRef ref) {
  return state.sessions.at(ref.session)->pages.at(ref.page);
}

bool is_running(const Session& session) {
  return session.engine && session.state == SessionState::kDecoding;
}

double waited_seconds(const Session& session, Instant now) {
  return static_cast<double>(now.nanoseconds - session.state_since.nanoseconds) * 1e-9;
}

void count_waiting(State& state, Session& session) {
  if (session.state == SessionState::kDecoding) return;
  state.survival.waited(session.state, waited_seconds(session, session.waited_until),
                        waited_seconds(session, state.now));
  session.waited_until = state.now;
}

void enter_state(Context& context, Session& session, SessionState next) {
  const bool other = session.state != next;
  count_waiting(context.state, session);
  const bool wakes = next == SessionState::kPreempted || next == SessionState::kDecoding;
  if (other && wakes && session.state != SessionState::kDecoding) {
    context.state.survival.resumed(session.state, waited_seconds(session, context.now));
  }
  // A turn is over when the user has the word.
  if (other && next == SessionState::kWaitingUser) session.policy->on_turn();
  session.state = next;
  session.state_since = context.now;
  session.waited_until = context.now;
  if (other) tape_session_state(context.state, session);
}

bool must_ask(const State& state, const Session& session) {
  const auto engine = state.engines.find(session.engine);
  return engine != state.engines.end() && engine->second.state != EngineState::kDead;
}

bool can_ask(const State& state, const Session& session) {
  const auto engine = state.engines.find(session.engine);
  if (engine == state.engines.end()) return true;
  return engine->second.state == EngineState::kAlive && engine->second.late_answers == 0;
}

void set_late(State& state, const Session& session, View& view, Late late) {
  const bool now = late == Late::kYes;
  if (view.late == now) return;
  view.late = now;
  // A page that waits behind somebody's fence is late too, but its engine has answered.
  Engine* engine = find_engine(state, session.engine);
  if (engine == nullptr || view.state != PageState::kAsked) return;
  if (now) {
    ++engine->late_answers;
  } else if (engine->late_answers > 0) {
    --engine->late_answers;
  }
}

void set_page_state(State& state, ViewRef ref, PageState next) {
  Session& session = *state.sessions.at(ref.session);
  View& view = session.pages.at(ref.page);
  MEMDECAY_CHECK(page_may_become(view.state, next));
  const PageState before = view.state;
  const bool was_visible = is_mapped(before);
  if (next != PageState::kAsked) set_late(state, session, view, Late::kNo);
  view.state = next;
  if (next != PageState::kAsked) {
    cancel_timer(state, Timer::Kind::kAsk, view.ask_due, ref.session.value, ref.page);
  }
  if (next != PageState::kRestoring) view.announced = false;
  const bool visible = is_mapped(next);
  if (was_visible && !visible) session.policy->on_evicted(ref.page);
  if (!was_visible && visible && session.policy && ref.page < session.sealed_pages &&
      !session.policy->resident(ref.page)) {
    session.policy->on_restored(ref.page);
  }
  tape_page_state(state, ref, before);
}

void drop_page(Context& context, ViewRef ref) {
  State& state = context.state;
  Session& session = *state.sessions.at(ref.session);
  View& view = session.pages.at(ref.page);
  view.op = {};
  view.fences = 0;
  set_page_state(state, ref, PageState::kDropped);
  Content& content = *state.contents.at(view.content);
  const auto found = std::find(content.views.begin(), content.views.end(), ref);
  content.views.erase(found);
  view.content = {};
  if (session.mode == Mode::kExact) session.ready = false;  // until truncated or computed again
  count(state, "pages_lost_total");
  notify(context, session.engine, session.id, LostNotice{ref.page});
  for (const OpId op : ops_with(state, ref)) {
    op_page_failed(context, op, ref.page, ErrorCode::kDataLoss);
  }
}

uint32_t occupancy(const Session& session) {
  return static_cast<uint32_t>(
      std::count_if(session.pages.begin(), session.pages.end(),
                    [](const View& view) { return occupies(view.state); }));
}

uint32_t missing_pages(const Session& session) {
  return static_cast<uint32_t>(
      std::count_if(session.pages.begin(), session.pages.end(), [](const View& view) {
        return !is_unsealed(view.state) && view.state != PageState::kSealing &&
               !is_mapped(view.state);
      }));
}

bool loses_pages(const Session& session) {
  return std::any_of(session.pages.begin(), session.pages.end(),
                     [](const View& view) { return view.state == PageState::kAsked; });
}

std::optional<PageIndex> first_dropped(const Session& session) {
  for (PageIndex page = 0; page < session.pages.size(); ++page) {
    if (session.pages[page].state == PageState::kDropped) return page;
  }
  return std::nullopt;
}

uint32_t smallest_budget(const State& state, const Session& session) {
  const Options& options = state.options;
  const uint32_t sinks = (options.sinks + options.page_tokens - 1) / options.page_tokens;
  uint32_t pins = 0;
  for (const View& view : session.pages) pins += view.pinned;
  return sinks + options.recent + pins + 1;
}

void note_written(Session& session, uint32_t position) {
  const uint64_t granted = session.pages.size() * uint64_t{session.layout.page_tokens};
  position = static_cast<uint32_t>(std::min<uint64_t>(position, granted));
  if (position <= session.position) return;
  session.position = position;
  if (missing_pages(session) > 0) session.tail_tainted = true;
}

PageView page_view(const State& state, const Session& session, PageIndex page) {
  const View& view = session.pages.at(page);
  PageView shown{.page = page, .state = view.state, .exactness = view.exactness};
  if (is_unsealed(view.state)) {
    shown.slot = view.slot;
  } else if (is_mapped(view.state) || view.state == PageState::kSealing ||
             (view.state == PageState::kRestoring && view.announced)) {
    const Content& content = *state.contents.at(view.content);
    MEMDECAY_CHECK(content.slot.has_value());
    shown.slot = *content.slot;
  }
  return shown;
}

}  // namespace memdecay::ledger
