// The world of `--world=real`: memdecayd-lab in a folder of its own, and one process per engine
// that drives the C interface. Reports come from Admin, levers from Lab. Thread: the runner's;
// requests of orchestrators run on threads of their own, since they may wait. Invariants: nothing
// outlives the world; rest() returns when nothing moves that waits for nobody; the daemon's clock
// stands but for tick and for statements that wait. Tenants are users, so several need root. Not
// here: engine placement (the C interface has none).
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "memdecay/v1/lab.pb.h"
#include "tests/scenario/engine_process.h"
#include "tests/scenario/lab_daemon.h"
#include "tests/scenario/real_admin.h"
#include "tests/scenario/real_codec.h"
#include "tests/scenario/world.h"

namespace memdecay::scenario {

// So long an engine process or the daemon may take over one command.
inline constexpr Duration kCommand = Duration::from_seconds(30);

class RealWorld final : public World {
 public:
  explicit RealWorld(Tracer trace);
  ~RealWorld() override;

  absl::Status start(const DaemonSpec& spec) override;
  absl::Status reload(const DaemonSpec& spec) override;
  absl::Status check_config(const DaemonSpec& spec) override;
  absl::Status daemon(DaemonDeed deed) override;

  absl::Status attach(const EngineSpec& spec) override;
  absl::Status engine(const std::string& name, EngineDeed deed) override;
  absl::Status add_member(const std::string& name, const std::string& member) override;
  absl::Status kill_member(const std::string& name, const std::string& member) override;
  bool can_speak(const std::string& name) override;
  std::vector<Heard> heard(const std::string& engine) override;
  absl::StatusOr<std::string> engine_state(const std::string& engine) override;
  std::optional<SlotRef> mapped(const std::string& engine, SessionId session,
                                PageIndex page) override;
  absl::Status write(const std::string& engine, SessionId session, PageIndex page, uint64_t offset,
                     const std::string& bytes) override;
  absl::StatusOr<std::string> read(const std::string& engine, SessionId session,
                                   PageIndex page) override;
  absl::StatusOr<Fence> make_fence(const std::string& engine) override;
  absl::Status signal(const std::string& engine, const Fence& fence) override;

  Ticket ask(const Caller& caller, ledger::Event event, Extras extras) override;
  std::optional<ledger::Reply> answer(Ticket ticket) override;
  std::optional<ledger::Reply> answer_soon(Ticket ticket, Likely likely) override;
  std::optional<ledger::Reply> wait(Ticket ticket, Duration patience) override;
  absl::Status cancel(const Caller& caller, Ticket restore) override;
  void rest() override;

  absl::Status tick(Duration by) override;
  absl::Status settle() override;
  absl::Status hold(Direction direction, SessionId session, PageIndex page) override;
  absl::Status end_copy(SessionId session, PageIndex page, Ending ending) override;
  absl::Status reorder(SessionId session, PageIndex first, SessionId other_session,
                       PageIndex second) override;
  absl::Status lose_completions(double probability) override;
  absl::Status hash_bits(int bits) override;
  absl::Status damage(Damage what, SessionId session, PageIndex page) override;
  absl::Status raw(const std::string& where, const Settings& options) override;

  absl::StatusOr<ledger::SessionReport> session(SessionId session) override;
  absl::StatusOr<std::vector<ledger::PageReport>> pages(SessionId session) override;
  absl::StatusOr<std::vector<ledger::DecisionReport>> decisions(
      SessionId session, std::optional<PageIndex> page) override;
  absl::StatusOr<std::vector<PageIndex>> victims(SessionId session, uint32_t count) override;
  absl::StatusOr<std::vector<ledger::Sample>> samples() override;
  absl::StatusOr<ledger::StatusReport> status() override;
  absl::StatusOr<std::vector<ledger::SessionReport>> sessions() override;
  absl::StatusOr<std::string> replica(SessionId session, PageIndex page) override;
  std::vector<std::string> audit() override;
  absl::StatusOr<Footprint> footprint() override;

 private:
  enum class Life : uint8_t { kAlive, kFrozen, kDetached, kGone };
  struct Engine {
    EngineSpec spec;
    std::unique_ptr<EngineProcess> process;
    Life life = Life::kAlive;
    std::vector<Heard> heard;
    uint64_t id = 0;  // the daemon's
    enum class Acks : uint8_t { kAutomatic, kManual } acks = Acks::kAutomatic;
    Duration frozen_at;                                           // of passed_
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> signalled;  // member, word: up to this value
  };
  // A request under way: at an engine process, or on a thread of ours.
  struct Asked {
    std::string engine;  // empty: ours
    EngineProcess* process = nullptr;
    uint64_t request = 0;
    std::function<ledger::ReplyBody(const WireWords&)> decode;
    std::optional<SessionId> unparks;  // its engine waits on after the daemon's answer
    bool done = false;
    ledger::Reply reply;
    std::thread thread;
  };
  struct TableRow {
    SlotRef slot;
    bool readable = false;
  };

  absl::StatusOr<Engine*> speaking(const std::string& name);
  Engine* find(const std::string& name);
  absl::StatusOr<WireWords> command(const std::string& engine, const std::string& line);
  std::map<std::string, int> known_lives() const;
  absl::Status wait_for_lives();
  void ask_ours(const std::shared_ptr<Asked>& asked, ledger::Event event, std::string tenant);
  ledger::Reply operate(const ledger::Event& event, const std::string& tenant);
  std::optional<ledger::Reply> take(Ticket ticket);
  // Waits so long by the machine's clock.
  std::optional<ledger::Reply> wait_awake(Ticket ticket, Duration patience);

  // real_rest.cc
  absl::Status stand();
  void arrive();
  struct Passed {
    uint64_t messages = 0;
    uint64_t unmapped = 0;  // pages whose slab is on its way
  };
  absl::StatusOr<Passed> pass_engines();
  absl::StatusOr<v1::SettleResponse> look(const v1::SettleRequest& request);
  v1::SettleRequest what_moves() const;
  size_t unanswered();
  // How far the daemon's clock was moved. kNextDeadline: not at all if there is none by then.
  enum class Until : uint8_t { kNextDeadline, kLimit };
  absl::StatusOr<Duration> pass_time(Duration limit, Until until);
  Duration until_silence() const;
  int overdue_silences() const;
  const std::vector<TableRow>& table(const std::string& engine, SessionId session);
  void changed();
  absl::Status lever(const std::string& what, SessionId session, std::vector<PageIndex> pages,
                     double value);

  Tracer trace_;
  std::unique_ptr<LabDaemon> daemon_;
  std::map<std::string, uint32_t> tenant_uids_;
  std::unique_ptr<RealAdmin> admin_;
  std::map<std::string, Engine> engines_;
  std::mutex mutex_;  // done and reply of what is asked on our threads
  std::condition_variable arrived_;
  std::map<Ticket, std::shared_ptr<Asked>> asked_;
  uint64_t last_ticket_ = 0;
  bool moved_ = true;  // something was asked since the last rest
  Ticket newest_;
  uint64_t steps_ = 0;  // the ledger's, at the last rest
  Duration passed_;     // by tick and by waiting; the daemon's clock stands otherwise
  Duration silent_;     // limits.silent
  std::vector<std::tuple<Direction, SessionId, PageIndex>> unsealed_holds_;
  std::map<std::pair<std::string, SessionId>, std::vector<TableRow>> tables_;  // until the next ask
};

}  // namespace memdecay::scenario
