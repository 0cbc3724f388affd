// What a scenario needs of a world: a daemon, engines that can die, bytes, time, and a look inside.
// Two implementations: sim_world (everything in one thread, injected clock) and real_world (the
// real daemon and one real process per engine). Requests are the ledger's own events; a world fills
// in who asks. Engines are named as in the script.
//
// Requests: ask() returns at once; the answer is there when answer() has one. rest() lets
// everything run that waits for nobody; wait() also lets time pass, as far as patience goes.
// Errors: typed statuses; what a world cannot do at all is refused before a script runs
// (statements.h, lacking()).
// Thread: the runner's (branches of `parallel` take turns).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/ledger/effects.h"
#include "daemon/ledger/events.h"
#include "daemon/ledger/report.h"
#include "proto/contract/layout.h"

namespace memdecay::scenario {

using Settings = std::vector<std::pair<std::string, std::string>>;

struct TenantSpec {
  std::string name;
  Settings settings;  // limit, reservation, priority, uid, gid
};

struct DaemonSpec {
  Settings settings;  // configuration keys
  std::vector<TenantSpec> tenants;
  uint64_t seed = 1;
};

struct EngineSpec {
  std::string name;
  std::string tenant;  // empty: the first
  Placement placement = Placement::kDaemon;
  uint32_t blocks = 0;
  uint16_t protocol_major = 1;
  uint16_t protocol_minor = 0;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  Layout layout;
};

enum class EngineDeed : uint8_t {
  kDetach,
  kReattach,
  kKill,
  kFreeze,
  kThaw,
  kLeave,
  kAck,
  kNoAck,
};
enum class DaemonDeed : uint8_t { kKill, kRestart, kStop };
enum class Direction : uint8_t { kEvict, kRestore, kStore };
enum class Damage : uint8_t { kFlip, kZero, kUnlink };

// A request under way.
struct Ticket {
  uint64_t value = 0;
  constexpr auto operator<=>(const Ticket&) const = default;
};

// Who asks: an engine, or (empty) an orchestrator of a tenant.
struct Caller {
  std::string engine;
  std::string tenant;             // without an engine; empty: the first
  std::optional<uint32_t> epoch;  // instead of the engine's own
};

// What an engine heard: kinds of vocabulary.md, one a page where it is about pages.
struct Heard {
  std::string kind;
  SessionId session;
  std::optional<PageIndex> page;
  std::optional<ErrorCode> code;
};

// Content that the caller knows by tokens; the world turns it into keys where that is its job.
struct Extras {
  std::vector<std::string> values;
};

class World {
 public:
  using Tracer = std::function<void(const std::string&)>;
  virtual ~World() = default;

  // ---- the daemon. start() replaces an earlier one.
  virtual absl::Status start(const DaemonSpec& spec) = 0;
  virtual absl::Status reload(const DaemonSpec& spec) = 0;
  virtual absl::Status check_config(const DaemonSpec& spec) = 0;
  virtual absl::Status daemon(DaemonDeed deed) = 0;

  // ---- engines
  virtual absl::Status attach(const EngineSpec& spec) = 0;
  virtual absl::Status engine(const std::string& name, EngineDeed deed) = 0;
  virtual absl::Status add_member(const std::string& name, const std::string& member) = 0;
  // The engine is dead when all its members are.
  virtual absl::Status kill_member(const std::string& name, const std::string& member) = 0;
  // It is alive and neither frozen nor detached.
  virtual bool can_speak(const std::string& name) = 0;
  virtual std::vector<Heard> heard(const std::string& engine) = 0;
  virtual absl::StatusOr<std::string> engine_state(const std::string& engine) = 0;
  // The slot under which the engine reads this page now.
  virtual std::optional<SlotRef> mapped(const std::string& engine, SessionId session,
                                        PageIndex page) = 0;
  virtual absl::Status write(const std::string& engine, SessionId session, PageIndex page,
                             uint64_t offset, const std::string& bytes) = 0;
  virtual absl::StatusOr<std::string> read(const std::string& engine, SessionId session,
                                           PageIndex page) = 0;
  // A fence that stays open until it is signalled.
  virtual absl::StatusOr<Fence> make_fence(const std::string& engine) = 0;
  virtual absl::Status signal(const std::string& engine, const Fence& fence) = 0;

  // ---- requests. Lookups and acquisitions carry tokens; keys are the world's.
  virtual Ticket ask(const Caller& caller, ledger::Event event, Extras extras = {}) = 0;
  // Each answer is given once, by whichever of the two gets it.
  virtual std::optional<ledger::Reply> answer(Ticket ticket) = 0;
  // For a request that is not waited for: once it is certainly on its way and the world rests.
  enum class Likely : uint8_t { kAnswered, kPending };
  virtual std::optional<ledger::Reply> answer_soon(Ticket ticket, Likely likely) = 0;
  virtual std::optional<ledger::Reply> wait(Ticket ticket, Duration patience) = 0;
  virtual absl::Status cancel(const Caller& caller, Ticket restore) = 0;
  virtual void rest() = 0;

  // ---- time and faults
  virtual absl::Status tick(Duration by) = 0;
  virtual absl::Status settle() = 0;
  virtual absl::Status hold(Direction direction, SessionId session, PageIndex page) = 0;
  enum class Ending : uint8_t { kFinish, kFail };
  virtual absl::Status end_copy(SessionId session, PageIndex page, Ending ending) = 0;
  virtual absl::Status reorder(SessionId session, PageIndex first, SessionId other_session,
                               PageIndex second) = 0;
  virtual absl::Status lose_completions(double probability) = 0;
  virtual absl::Status hash_bits(int bits) = 0;
  virtual absl::Status damage(Damage what, SessionId session, PageIndex page) = 0;
  virtual absl::Status raw(const std::string& where, const Settings& options) = 0;

  // ---- looking inside
  virtual absl::StatusOr<ledger::SessionReport> session(SessionId session) = 0;
  virtual absl::StatusOr<std::vector<ledger::PageReport>> pages(SessionId session) = 0;
  virtual absl::StatusOr<std::vector<ledger::DecisionReport>> decisions(
      SessionId session, std::optional<PageIndex> page) = 0;
  virtual absl::StatusOr<std::vector<PageIndex>> victims(SessionId session, uint32_t count) = 0;
  virtual absl::StatusOr<std::vector<ledger::Sample>> samples() = 0;
  virtual absl::StatusOr<ledger::StatusReport> status() = 0;
  virtual absl::StatusOr<std::vector<ledger::SessionReport>> sessions() = 0;
  // The bytes that a restore would bring back; not_found without a replica.
  virtual absl::StatusOr<std::string> replica(SessionId session, PageIndex page) = 0;
  virtual std::vector<std::string> audit() = 0;
  struct Footprint {
    int64_t rss_bytes = 0;  // without what the tiers hold
    int64_t descriptors = 0;
  };
  virtual absl::StatusOr<Footprint> footprint() = 0;
  // Of everything that happened, where the world is deterministic.
  virtual std::optional<uint64_t> event_hash() const { return std::nullopt; }
};

}  // namespace memdecay::scenario
