// The world of `--world=sim`: ledger, policy, reactor and bytes of tests/sim in one thread, with
// scripted engines as the reactor's edge. It does what the server's edges do in the daemon: turns
// layouts into namespaces and tokens into keys, refuses bad layouts and versions, notices silence.
//
// Who runs next (daemon or one of the engines that have something to read) is drawn by the seed.
// Thread: the test's one. Invariants: the same seed and calls give the same event hash.
// Not here: sockets, credentials, disk; the language.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/base/random.h"
#include "daemon/server/config.h"
#include "tests/scenario/scripted_engine.h"
#include "tests/scenario/world.h"
#include "tests/sim/sim_world.h"

namespace memdecay::scenario {

class SimScenarioWorld final : public World, private reactor::Edge {
 public:
  explicit SimScenarioWorld(Tracer trace) : trace_(std::move(trace)) {}

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
  std::optional<uint64_t> event_hash() const override;

 private:
  struct WaitingHold {
    Direction direction;
    SessionId session;
    PageIndex page = 0;
  };

  // The reactor's edge.
  void reply(const ledger::Reply& reply) override;
  void notify(const ledger::Notice& notice) override;
  void share_slab(const ledger::ShareSlab& share) override;

  absl::StatusOr<server::Config> configure(const DaemonSpec& spec) const;
  absl::StatusOr<ScriptedEngine*> speaking(const std::string& name);
  ScriptedEngine* find(const std::string& name);
  ScriptedEngine* find(EngineId id);
  TenantId tenant_id(const std::string& name) const;
  absl::StatusOr<ledger::LayoutRef> layout_ref(const Layout& layout) const;
  absl::Status fill_layout(const EngineSpec& spec, const Extras& extras, ledger::Event& event);
  absl::StatusOr<ledger::PageReport> page(SessionId session, PageIndex page);
  absl::StatusOr<ContentId> content(SessionId session, PageIndex page);
  void refuse(Ticket ticket, absl::Status status);
  void post(const ledger::Event& event, bool from_engine);
  ledger::Reply demand(ledger::Event event);
  void place_holds();
  bool advance_to_next(Instant limit);
  void notice_silence();

  Tracer trace_;
  server::Config config_;
  std::unique_ptr<sim::SimWorld> world_;
  base::Random random_{1};
  // In the order in which they attached; a name may come again after its death.
  std::vector<std::unique_ptr<ScriptedEngine>> engines_;
  std::map<std::string, std::set<std::string>> members_;  // of engines, besides the first process
  std::map<RequestId, ScriptedEngine*> askers_;           // whose answers have not been read yet
  std::set<RequestId> abandoned_;  // their engine died; nobody reads the answer
  std::map<RequestId, ledger::Reply> answers_;
  std::vector<WaitingHold> holds_;
  std::map<std::pair<SessionId, PageIndex>, ContentId> held_;  // whose copies a script has held
};

}  // namespace memdecay::scenario
