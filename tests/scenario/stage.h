// The stage: what a running script knows. Its engines, sessions (with the oracle's view of every
// page), requests under way, fences, and the world they act in. Verbs read and change it; every
// verb gives an Outcome, which the runner judges against `!code` and `-> …`. Thread: the runner's;
// branches of `parallel` take turns. Invariant: a session's pages here are those that its engine
// was granted or has acquired, in order. Not here: control flow and judging (runner.cc), the verbs
// (verbs_*.cc, expect_*.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tests/scenario/oracle.h"
#include "tests/scenario/syntax.h"
#include "tests/scenario/turns.h"
#include "tests/scenario/values.h"
#include "tests/scenario/world.h"

namespace memdecay::scenario {

struct PageModel {
  std::string key;
  std::string extra;
  ContentPrint content = 0;  // 0: nothing written yet
  bool first_half = false;   // written
  bool second_half = false;
  bool sealed = false;
};

struct SessionModel {
  std::string name;
  SessionId id;
  std::string engine;
  std::string tenant;
  std::string key;  // of the next pages
  Mode mode = Mode::kExact;
  std::vector<PageModel> pages;
  uint64_t step = 0;
  bool closed = false;
};

struct Pending {
  Ticket ticket;
  Caller caller;
  std::string verb;
  std::optional<ledger::Reply> reply;
  std::function<void(const ledger::Reply&)> learn;  // what the stage learns from the reply
};

struct NamedFence {
  std::string engine;
  Fence fence;
  bool signalled = false;
};

struct Outcome {
  absl::Status status;  // what the daemon answered
  std::string broken;   // not empty: the statement itself is wrong or an expectation does not hold
  // Answers for "-> …"; the first one has no name, words are flags with an empty value.
  std::vector<std::pair<std::string, std::string>> answer;
};

Outcome broken(std::string what);
Outcome broken(const absl::Status& why);
Outcome unexpected(std::string expected, std::string actual);

struct Stage {
  World* world = nullptr;
  uint64_t seed = 1;
  Turns* turns = nullptr;

  DaemonSpec daemon;
  bool described = false;  // a `daemon` statement was there
  bool started = false;
  World::Footprint footprint;  // after the start

  std::map<std::string, EngineSpec> engines;
  std::map<std::string, std::shared_ptr<SessionModel>> sessions;
  std::map<std::string, std::shared_ptr<Pending>> named;
  std::vector<std::shared_ptr<Pending>> open;  // not answered yet
  std::map<std::string, NamedFence> fences;

  uint32_t page_tokens() const;
  uint64_t page_bytes() const;  // unless an engine says otherwise
  uint64_t page_bytes_of(const SessionModel& session) const;
};

enum class Waits : uint8_t { kForAnswer, kNot };
inline constexpr Duration kPatience = Duration::from_seconds(60);

// The daemon starts at the first statement that needs it.
absl::Status ensure_started(Stage& stage);

// Takes the answers that have come and lets the stage learn from them.
void absorb(Stage& stage);

// Asks, and waits unless the call has a name (`as`) or Waits::kNot. `learn` runs when the reply is
// there. The outcome has the reply's status, or ok while it is pending.
struct Asked {
  Outcome outcome;
  std::optional<ledger::Reply> reply;
};
Asked ask(Stage& stage, const Call& call, const Caller& caller, ledger::Event event, Waits waits,
          std::function<void(const ledger::Reply&)> learn = {}, Extras extras = {});
// One that a verb needs on the way.
ledger::Reply demand(Stage& stage, const Caller& caller, ledger::Event event, Extras extras = {});

absl::StatusOr<std::shared_ptr<SessionModel>> find_session(Stage& stage, const std::string& name);
// The pages that the words name; `S:*` is all of them.
struct ModelPages {
  std::shared_ptr<SessionModel> session;
  std::vector<PageIndex> pages;
};
absl::StatusOr<ModelPages> find_pages(Stage& stage, const std::string& word);
// The session's engine, with `epoch=` if the call has one.
Caller engine_of(const SessionModel& session, const Call& call);
// The engine if it can speak, otherwise an orchestrator of its tenant.
Caller anybody_of(Stage& stage, const SessionModel& session, const Call& call);

// A named fence, open; made by `engine` if it is new.
absl::StatusOr<Fence> named_fence(Stage& stage, const std::string& name, const std::string& engine);

// What the oracle says: of a page that is written now, and of pages computed with nothing missing
// after those `before`.
ContentPrint content_now(Stage& stage, const SessionModel& session, PageIndex page);
std::vector<PageModel> exact_pages(const std::string& key, const std::string& extra,
                                   std::vector<PageModel> before, uint32_t pages,
                                   uint32_t page_tokens);

using Verb = Outcome (*)(Stage& stage, const Call& call);
struct VerbEntry {
  std::string_view name;
  Verb verb;
};
absl::Span<const VerbEntry> daemon_verbs();
absl::Span<const VerbEntry> engine_verbs();
absl::Span<const VerbEntry> session_verbs();
absl::Span<const VerbEntry> page_verbs();
absl::Span<const VerbEntry> sharing_verbs();
absl::Span<const VerbEntry> annotation_verbs();
absl::Span<const VerbEntry> lab_verbs();
Outcome expect_verb(Stage& stage, const Call& call);
Verb find_verb(std::string_view name);

}  // namespace memdecay::scenario
