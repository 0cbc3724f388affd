// The engines as the edges know them: secret, tenant, and the state of the one stream that carries
// all their mutations: what was applied (so that a repeat is not applied twice), what waits to be
// read by the engine, and whether its stream may be read further.
// Thread: any; one leaf mutex guards all of it. StreamPort's functions are called under it and must
// neither block nor call back. Nothing but Reactor::post_stream and complete is called under it.
// Bounds: limits.stream_queue messages wait for an engine (one more cuts it off),
// limits.stream_window requests are without an answer (then its stream is not read),
// limits.replay answers are kept.
// Not here: gRPC (memory_service.cc), sockets (handle_server.h), what messages mean (from_wire.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/clock.h"
#include "daemon/ledger/effects.h"
#include "daemon/ledger/events.h"
#include "daemon/reactor/reactor.h"
#include "daemon/server/config.h"
#include "memdecay/v1/memory.pb.h"
#include "proto/contract/handle_frames.h"
#include "proto/contract/ids.h"

namespace memdecay::server {

// Who calls, as proven by the token.
struct Caller {
  EngineId engine;
  Epoch epoch;
  TenantId tenant;
  uint32_t uid = 0;
};

// The gRPC side of an engine's stream.
class StreamPort {
 public:
  virtual ~StreamPort() = default;
  // Starts writing a copy; EngineTable::written() follows once it is out.
  virtual void write(const v1::StreamResponse& message) = 0;
  // Starts reading the next message.
  virtual void read() = 0;
  // Ends the stream.
  virtual void close(const absl::Status& status) = 0;
};

class EngineTable {
 public:
  // `cut` is called (any thread, under the mutex) for an engine that does not read.
  EngineTable(EdgeLimits limits, const base::Clock& clock, std::function<void(EngineId)> cut);
  // Before the first engine.
  void bind(reactor::Reactor& reactor);

  // ---- coming and going (handle server) ----
  void add(const Caller& caller, const Token& token);
  void set_epoch(EngineId engine, Epoch epoch);
  // The engine comes back: its old stream is heard no more, and the event is posted behind all that
  // it had sent.
  void take_back(EngineId engine, ledger::Event event);
  // Posts behind everything that the engine has sent, even when the lane is full.
  void post_behind(EngineId engine, ledger::Event event);
  // The process is certainly gone: once its stream has been read to the end, a last Disconnected is
  // posted behind it; when that has been stepped the engine is forgotten.
  void bury(EngineId engine);
  // Reactor's thread, after a step of Disconnected. kOver: everything that the engine had sent has
  // been stepped; post EngineGone now.
  enum class Farewell : uint8_t { kNotYet, kOver };
  Farewell disconnected_stepped(EngineId engine);
  // An orderly goodbye, said on the stream or the handle socket.
  void leave(EngineId engine);
  // Ends streams that outlived their engine's process.
  void close_buried();

  // permission: no such engine, or another token; stale_epoch is the stream's to find.
  absl::StatusOr<Caller> authenticate(EngineId engine, const Token& token) const;
  absl::StatusOr<Caller> find(EngineId engine) const;

  // ---- the stream (gRPC) ----
  absl::Status attach_stream(EngineId engine, StreamPort& port);
  // After this nothing is called on the port any more.
  void detach_stream(EngineId engine, StreamPort& port);
  // kFresh: apply it. Everything else has been taken care of.
  enum class Admission : uint8_t { kFresh, kHandled };
  // `port`: the stream that it came on; null: not looked at.
  Admission admit(EngineId engine, Epoch epoch, uint64_t seq, uint64_t session,
                  const StreamPort* port = nullptr);
  // Which request of the reactor an admitted message became; asked for by its number later.
  void note_request(EngineId engine, uint64_t seq, RequestId request);
  std::optional<RequestId> request_of(EngineId engine, uint64_t seq) const;
  void post(EngineId engine, ledger::Event event);
  // The answer to a message; kept for a repeat, sent to whatever stream the engine has now.
  void answer(EngineId engine, uint64_t seq, v1::StreamResponse response);
  // The engine says no more on this stream: it ends once everything has been answered.
  void end_when_answered(EngineId engine, StreamPort& port);
  // Reads on, now or when there is room again.
  void read_on(EngineId engine, StreamPort& port);
  void written(EngineId engine, StreamPort& port);

  // ---- notices (reactor's thread) ----
  void notify(const ledger::Notice& notice);
  // The reactor's stream lane has room again.
  void stream_room();
  void remember_slab(const ledger::ShareSlab& share);
  void forget_slab(EngineId engine, SlabId slab);
  std::vector<ledger::ShareSlab> slabs_of(EngineId engine) const;

  // ---- silence (handle server) ----
  void heard(EngineId engine);
  enum class Quiet : uint8_t { kOwesAnswer, kIdle };
  // Engines that have not been heard for limits.silent and are not flagged yet.
  std::vector<std::pair<EngineId, Quiet>> quiet() const;
  void flag_silent(EngineId engine);
  // Engines that have been asked something and have not spoken since.
  size_t owing() const;

  // Of all engines with a stream.
  size_t messages_waiting() const;
  // The daemon stops: no stream is read any more, each ends in good order once everything that
  // waits for its engine is out. (With an error status gRPC drops what the engine has not read
  // yet.)
  void end_all();

 private:
  struct Link {
    Caller caller;
    Token token{};
    enum class Life : uint8_t { kHere, kLeft, kBuried } life = Life::kHere;

    StreamPort* port = nullptr;
    enum class Writing : uint8_t { kNo, kYes } writing = Writing::kNo;
    enum class Reading : uint8_t { kNo, kPaused, kOver } reading = Reading::kNo;
    std::deque<v1::StreamResponse> outbox;
    uint64_t last_seq = 0;
    uint64_t notices = 0;
    absl::flat_hash_map<uint64_t, RequestId> unanswered;
    absl::btree_map<uint64_t, v1::StreamResponse> answers;
    std::deque<ledger::Event> parked;  // the lane was full; in order
    uint32_t farewells = 0;            // Disconnected posted and not stepped yet
    enum class Last : uint8_t { kNotPosted, kPosted } last = Last::kNotPosted;
    absl::btree_map<SlabId, ledger::ShareSlab::Access> slabs;

    Instant heard_at;
    Instant buried_at;
    Quiet quiet = Quiet::kIdle;
    enum class Flag : uint8_t { kSpeaking, kSilent } flag = Flag::kSpeaking;
  };

  Link* link(EngineId engine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Link* link(EngineId engine) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void push(Link& to, v1::StreamResponse message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void write_next(Link& to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void post_ordered(Link& from, ledger::Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void unpark(Link& from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void read_if_room(Link& from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void hear(Link& from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void end_if_answered(Link& of) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status unknown_engine(EngineId engine);
  void post_last(Link& from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const EdgeLimits limits_;
  const base::Clock& clock_;
  const std::function<void(EngineId)> cut_;
  reactor::Reactor* reactor_ = nullptr;

  mutable absl::Mutex mutex_;
  absl::btree_map<EngineId, Link> links_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace memdecay::server
