// What happened, as events (see tape.h). Events are short: what a reader can find out is left out.
#include "daemon/ledger/tape.h"

#include <algorithm>
#include <span>
#include <utility>

#include "daemon/ledger/pages.h"
#include "daemon/ledger/state.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

using trace::SessionNumber;

// Reasons of `out` that are none of the vocabulary's.
constexpr const char* kLost = "lost";            // its bytes are gone
constexpr const char* kElsewhere = "elsewhere";  // it begins outside the device

uint64_t salted(const Tape& tape, const PageKey& key) {
  return base::keyed_hash(tape.options.salt, key.bytes);
}

bool wanted(const Tape& tape, const Session& session) {
  const auto& names = tape.options.sessions;
  return names.empty() || std::find(names.begin(), names.end(), session.name) != names.end();
}

void add(Tape& tape, SessionNumber session, trace::What what) {
  tape.events.push_back({.session = session, .what = std::move(what)});
}

// One more page of the event before, if that is of this step and says the same.
template <typename Kind>
void add_page(Tape& tape, SessionNumber session, PageIndex page, Kind fresh) {
  if (tape.events.size() > tape.stamped && tape.events.back().session == session) {
    if (auto* last = std::get_if<Kind>(&tape.events.back().what)) {
      bool same = last->pages.size() < trace::kMostInAList;
      if constexpr (requires { fresh.why; }) same = same && last->why == fresh.why;
      if (same) {
        last->pages.push_back(page);
        return;
      }
    }
  }
  fresh.pages.push_back(page);
  add(tape, session, std::move(fresh));
}

trace::Sealed sealed(const State& state, const Session& session, PageIndex page) {
  trace::Sealed out{
      .page = page, .tokens = session.layout.page_tokens, .runs = region_runs(session, page)};
  const auto content = state.contents.find(session.pages[page].content);
  if (content != state.contents.end() && content->second->key.has_value()) {
    out.key = salted(*state.tape, *content->second->key);
  }
  return out;
}

trace::Opened opened(const Session& session, trace::Opened::Born born) {
  return {.tenant = session.tenant.value,
          .mode = std::string(mode_name(session.mode)),
          .policy = session.policy->options().name,
          .born = born};
}

// Pages that the session has and does not see.
void add_unseen(Tape& tape, const Session& session, SessionNumber number, PageIndex end) {
  for (PageIndex page = 0; page < end; ++page) {
    const PageState view = session.pages[page].state;
    if (is_mapped(view) || view == PageState::kSealing) continue;
    const bool gone = view == PageState::kDropped;
    add_page(tape, number, page, trace::Left{.why = gone ? kLost : kElsewhere});
  }
}

// The session's number; one that is not known yet is introduced with its pages before `end`.
// 0: nothing of it is recorded.
SessionNumber number_of(State& state, const Session& session, PageIndex end) {
  Tape& tape = *state.tape;
  const auto [found, fresh] = tape.numbers.try_emplace(session.id, 0);
  if (!fresh || !wanted(tape, session)) return found->second;
  const SessionNumber number = found->second = ++tape.last_number;
  add(tape, number, opened(session, trace::Opened::Born::kOld));
  for (PageIndex page = 0; page < end; ++page) {
    add(tape, number, sealed(state, session, page));
  }
  add_unseen(tape, session, number, end);
  for (PageIndex page = 0; page < end; ++page) {
    if (session.pages[page].pinned) add_page(tape, number, page, trace::Pinned{});
  }
  if (session.state != SessionState::kDecoding) {
    add(tape, number, trace::Became{.state = std::string(session_state_name(session.state))});
  }
  return number;
}

SessionNumber number_of(State& state, const Session& session) {
  return number_of(state, session, session.sealed_pages);
}

// Adds an event of a session that is recorded.
template <typename What>
void say(State& state, const Session& session, What what) {
  if (const SessionNumber number = number_of(state, session)) {
    add(*state.tape, number, std::move(what));
  }
}

std::string why_left(const View& view) {
  if (view.state == PageState::kDropped) return kLost;
  return std::string(reason_name(view.departure.why));
}

}  // namespace

void tape_open(State& state, const Session& session) {
  if (state.tape == nullptr) return;
  Tape& tape = *state.tape;
  SessionNumber& number = tape.numbers[session.id];
  if (!wanted(tape, session)) return;
  number = ++tape.last_number;
  add(tape, number, opened(session, trace::Opened::Born::kHere));
}

void tape_fork(State& state, const Session& session, const Session& from) {
  if (state.tape == nullptr) return;
  const SessionNumber of = number_of(state, from);
  if (of == 0) return;
  const SessionNumber number = ++state.tape->last_number;
  state.tape->numbers[session.id] = number;
  add(*state.tape, number, trace::Forked{.of = of});
  if (session.sealed_pages < from.sealed_pages) {
    add(*state.tape, number, trace::Cut{.page = session.sealed_pages});
  }
  add_unseen(*state.tape, session, number, session.sealed_pages);
}

void tape_end(State& state, const Session& session) {
  if (state.tape == nullptr) return;
  const auto found = state.tape->numbers.find(session.id);
  if (found != state.tape->numbers.end() && found->second != 0) {
    add(*state.tape, found->second, trace::Ended{});
  }
  state.tape->numbers[session.id] = 0;
}

void tape_session_state(State& state, const Session& session) {
  if (state.tape == nullptr) return;
  say(state, session, trace::Became{.state = std::string(session_state_name(session.state))});
}

void tape_seal(State& state, const Session& session, PageIndex page) {
  if (state.tape == nullptr) return;
  const SessionNumber number = number_of(state, session, page);
  if (number == 0) return;
  add(*state.tape, number, sealed(state, session, page));
  if (session.pages[page].state == PageState::kHole) {
    add_page(*state.tape, number, page, trace::Left{.why = kElsewhere});
  }
}

void tape_tag(State& state, const Session& session, PageIndex page) {
  if (state.tape == nullptr) return;
  say(state, session, trace::Tagged{.page = page, .runs = region_runs(session, page)});
}

void tape_cut(State& state, const Session& session, PageIndex first_removed) {
  if (state.tape == nullptr) return;
  if (!state.tape->numbers.contains(session.id)) {
    number_of(state, session);  // introduced as it is now
    return;
  }
  say(state, session, trace::Cut{.page = first_removed});
}

void tape_pin(State& state, const Session& session, PageIndex page) {
  if (state.tape == nullptr) return;
  const SessionNumber number = number_of(state, session);
  if (number != 0) add_page(*state.tape, number, page, trace::Pinned{});
}

void tape_unpin(State& state, const Session& session, PageIndex page) {
  if (state.tape == nullptr) return;
  const SessionNumber number = number_of(state, session);
  if (number != 0) add_page(*state.tape, number, page, trace::Unpinned{});
}

void tape_page_state(State& state, const ViewRef& ref, PageState before) {
  if (state.tape == nullptr) return;
  const Session& session = *state.sessions.at(ref.session);
  if (ref.page >= session.sealed_pages) return;
  const View& view = session.pages[ref.page];
  const bool left = is_mapped(before) && !is_mapped(view.state);
  const bool back = before == PageState::kRestoring && is_mapped(view.state);
  if (!left && !back && view.state != PageState::kDropped) return;
  const SessionNumber number = number_of(state, session);
  if (number == 0) return;
  if (back) {
    add_page(*state.tape, number, ref.page, trace::Returned{});
  } else {
    add_page(*state.tape, number, ref.page, trace::Left{.why = why_left(view)});
  }
}

void tape_observe(State& state, const Session& session, const Observe& event) {
  if (state.tape == nullptr) return;
  const SessionNumber number = number_of(state, session);
  if (number == 0) return;
  if (event.queries == 0) {
    add(*state.tape, number, trace::Stepped{.step = session.step});
    return;
  }
  trace::Observed observed{.step = session.step,
                           .query_position = session.position,
                           .queries = event.queries,
                           .sink = event.sink,
                           .tail = event.tail,
                           .rest = event.rest};
  observed.masses.reserve(event.masses.size());
  for (const auto& [page, mass] : event.masses) observed.masses.push_back({page, mass});
  add(*state.tape, number, std::move(observed));
}

void tape_look(State& state, const Session* session, const TapedLook& look) {
  if (state.tape == nullptr) return;
  Tape& tape = *state.tape;
  const SessionNumber number = session != nullptr ? number_of(state, *session) : 0;
  if (number == 0 && (session != nullptr || !tape.options.sessions.empty())) return;
  trace::Looked looked{
      .hit = static_cast<uint32_t>(look.found), .tail = look.tail, .taken = look.taken};
  looked.keys.reserve(look.keys.size());
  for (const PageKey& key : look.keys) looked.keys.push_back(salted(tape, key));
  add(tape, number, std::move(looked));
}

void stamp_tape(State& state, Instant now) {
  if (state.tape == nullptr) return;
  Tape& tape = *state.tape;
  const int64_t since = (now - tape.began).milliseconds();
  for (; tape.stamped < tape.events.size(); ++tape.stamped) {
    tape.events[tape.stamped].at_ms = static_cast<uint64_t>(std::max<int64_t>(since, 0));
  }
}

}  // namespace memdecay::ledger
