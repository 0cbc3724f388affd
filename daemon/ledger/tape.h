// The tape: what a recording hears of the ledger, as events of the trace format (proto/TRACE.md).
// While nobody records there is no tape and each of these functions returns at once. Nothing reads
// a tape back: with one and without, the same events give the same decisions and effects.
//
// A session that the recording has not heard of is introduced by the first event about it: it
// opened before, with the pages it has. Whoever runs the ledger takes the events after each step.
// Thread: the ledger's. Bound: the events of one step, and one introduction a session.
// Not here: lines (daemon/policy/trace), the queue and the stream (daemon/server/recorder.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "daemon/base/keyed_hash.h"
#include "daemon/policy/trace/event.h"
#include "proto/contract/clock.h"
#include "proto/contract/ids.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::ledger {

struct State;
struct Session;
struct ViewRef;
struct Observe;

struct TapeOptions {
  base::HashKey salt{};               // names of contents are hashed under it
  std::vector<std::string> sessions;  // by name; empty: all
};

struct Tape {
  TapeOptions options;
  Instant began;
  std::vector<trace::Event> events;                              // not taken yet
  size_t stamped = 0;                                            // of them have their time
  absl::flat_hash_map<SessionId, trace::SessionNumber> numbers;  // 0: nothing of it is recorded
  trace::SessionNumber last_number = 0;
};

// Opened in this step, with no pages.
void tape_open(State& state, const Session& session);
// The session has begun with pages of `from`.
void tape_fork(State& state, const Session& session, const Session& from);
void tape_end(State& state, const Session& session);
void tape_session_state(State& state, const Session& session);
void tape_seal(State& state, const Session& session, PageIndex page);
void tape_tag(State& state, const Session& session, PageIndex page);
void tape_cut(State& state, const Session& session, PageIndex first_removed);
void tape_pin(State& state, const Session& session, PageIndex page);
void tape_unpin(State& state, const Session& session, PageIndex page);
// After a change of View::state, from `before` to what it is now.
void tape_page_state(State& state, const ViewRef& view, PageState before);
void tape_observe(State& state, const Session& session, const Observe& event);

// A prefix was asked for; `session`: it was acquired into that one.
struct TapedLook {
  absl::Span<const PageKey> keys;
  size_t found = 0;
  trace::Looked::Tail tail = trace::Looked::Tail::kNone;
  trace::Looked::Taken taken = trace::Looked::Taken::kAcquired;
};
void tape_look(State& state, const Session* session, const TapedLook& look);

// Gives the events since the last call their time: that of the step that ends.
void stamp_tape(State& state, Instant now);

}  // namespace memdecay::ledger
