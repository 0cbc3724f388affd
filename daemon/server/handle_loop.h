// The epoll loop behind HandleServer: connections, members, engines' processes.
// Thread: run() and everything private on its own thread; post() and stop() on any.
// Invariants: a member has at most one connection; a connection belongs to at most one member; an
// engine is in engines_ from its first member's Welcome until it is buried.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/server/edge.h"
#include "daemon/server/handle_server.h"
#include "daemon/server/peer.h"
#include "daemon/server/shared_memory.h"
#include "proto/contract/handle_socket.h"

namespace memdecay::server {

class HandleLoop {
 public:
  using Task = absl::AnyInvocable<void()>;

  HandleLoop(HandleOptions options, UniqueFd listening, Edge& edge, SharedMemory& memory,
             const base::Clock& clock, const base::Log& log)
      : options_(std::move(options)),
        listening_(std::move(listening)),
        edge_(edge),
        memory_(memory),
        clock_(clock),
        log_(log) {}

  absl::Status prepare();
  void run();

  // Runs on the loop's thread, in order.
  void post(Task task);
  void stop();

  void send_slab(EngineId engine, SlabHandle slab);
  void cut(EngineId engine);
  void open_door();
  void close_door() { listening_.reset(); }

 private:
  using ConnectionId = uint64_t;

  struct Connection {
    UniqueFd socket;
    Peer peer;
    FrameReader reader;
    FrameWriter writer;
    enum class Stage : uint8_t { kHello, kAttaching, kMember, kClosing } stage = Stage::kHello;
    Instant since;
    EngineId engine;
    uint32_t member = 0;
    uint32_t refused_frames = 0;
    enum class Wants : uint8_t { kRead, kReadWrite } wants = Wants::kRead;
  };
  struct Member {
    pid_t pid = 0;
    UniqueFd pidfd;
    DeathConfirmation death = DeathConfirmation::kSocketOnly;
    ConnectionId connection = 0;  // 0: closed
  };
  struct Engine {
    std::map<uint32_t, Member> members;
    enum class Link : uint8_t { kConnected, kDisconnected } link = Link::kConnected;
  };
  // What an attach needs to go on with after the ledger's answer.
  struct Attaching {
    ConnectionId connection = 0;
    TenantId tenant;
    ProtocolVersion version;
  };
  // What the reactor's thread adds to it.
  struct Attached {
    absl::Status status;
    EngineId engine;
    Epoch epoch;
    Token token{};
    std::optional<ShadowHandle> shadow;
    std::vector<SlabHandle> slabs;
  };

  // ---- handle_loop.cc ----
  void run_tasks();
  void accept_all();
  void on_ready(ConnectionId id, uint32_t events);
  void read_from(ConnectionId id);
  void on_frame(ConnectionId id, ReceivedFrame frame);
  void send(ConnectionId id, const Frame& frame, std::vector<UniqueFd> fds = {});
  void flush(ConnectionId id);
  // Says why, and closes once that is sent (or at once if it cannot be).
  void refuse(ConnectionId id, const absl::Status& status);
  enum class Then : uint8_t { kKeep, kClose };
  void refuse_frame(ConnectionId id, const absl::Status& status, Then then);
  void close(ConnectionId id);
  void tick();
  static uint64_t process_key(EngineId engine, uint32_t member);
  void watch(int fd, uint64_t key, uint32_t events, int operation);

  // ---- handle_attach.cc ----
  void on_hello(ConnectionId id, const Hello& hello);
  absl::Status check_hello(const Hello& hello) const;
  void attach_new(const Attaching& attaching, const Hello& hello);
  void attach_known(const Attaching& attaching, const Hello& hello);
  void join(const Attaching& attaching, const Caller& caller, const Token& token);
  // On the reactor's thread: what a new member gets.
  Attached gather(const Caller& caller, const Token& token);
  void finish_attach(const Attaching& attaching, Attached attached);
  uint32_t place_member(Engine& engine, Connection& connection, ConnectionId id);
  void on_goodbye(ConnectionId id);
  void on_closed(const Connection& connection);
  void on_process_gone(EngineId engine, uint32_t member);
  void settle(EngineId engine);

  HandleOptions options_;
  UniqueFd listening_;
  Edge& edge_;
  SharedMemory& memory_;
  const base::Clock& clock_;
  const base::Log& log_;

  UniqueFd epoll_;
  UniqueFd wake_;
  std::map<ConnectionId, Connection> connections_;
  std::map<EngineId, Engine> engines_;
  ConnectionId last_connection_ = 0;
  Instant last_tick_;

  absl::Mutex mutex_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  enum class Run : uint8_t { kOn, kStopping };
  Run running_ ABSL_GUARDED_BY(mutex_) = Run::kOn;
};

}  // namespace memdecay::server
