// Client: one engine process's side of the protocol. Joins the handle socket, the stream, the slabs
// and the sessions; memdecay.cc and its neighbours are a thin C skin over it.
//
// Threads: any may call; waiting calls release the mutex while they wait. Messages come on gRPC's
// threads (on_message), frames and reconnects on the keeper's. One mutex guards all state; the
// order of locks is client → slabs, stream.
// Invariants: outside of a step, and with automatic acknowledgement, nothing is pending about a
// session's pages but what waits for a slab; every message that changes something is answered or
// replayed. Not here: any decision about pages (daemon).
//
// Code: client.cc calls and replies · client_notices.cc what the daemon says · client_keeper.cc
// connecting · client_sessions.cc opening, closing, growing · client_steps.cc sealing and steps.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/lib/handle_link.h"
#include "client/lib/outbox.h"
#include "client/lib/session.h"
#include "client/lib/slab_map.h"
#include "client/lib/stream_link.h"
#include "client/memdecay.h"
#include "cuda/timeline.h"

namespace memdecay::client {

struct ClientOptions {
  std::string socket_path;
  Hello hello;  // what to say when attaching as a new engine or a joining member
  uint32_t grants_ahead = 0;
  uint32_t observe_every = 16;
  Duration timeout;
  enum class Lockstep : uint8_t { kNo, kYes } lockstep = Lockstep::kNo;
  enum class Acks : uint8_t { kAutomatic, kManual } acks = Acks::kAutomatic;
};

enum class Steal : uint8_t { kNo, kYes };
enum class Keep : uint8_t { kKeep, kForget };

class Client final : private StreamLink::Listener {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> connect(ClientOptions options);
  ~Client() override;

  // ---- the connection (client_keeper.cc) ----
  void leave();
  absl::Status detach();
  absl::Status reattach(Instant deadline);
  memdecay_identity identity() const;
  bool connected() const;

  // ---- calls (client.cc) ----
  Instant deadline_in(int32_t timeout_ms) const;
  // Sends and waits. `asked` is for error texts; without a session it is about the engine.
  absl::StatusOr<v1::Reply> call(const std::string& asked, const Session* session,
                                 v1::StreamRequest message, Instant deadline,
                                 Outbox::Effect effect = nullptr);
  // Sends and does not wait; a refusal becomes an event.
  absl::Status tell(const std::string& asked, const Session& session, v1::StreamRequest message);
  absl::StatusOr<v1::LookupResponse> lookup(const v1::LookupRequest& request, Instant deadline);
  // A call in two parts: `ticket` from start, then wait for its reply.
  absl::StatusOr<uint64_t> start(const std::string& asked, const Session& session,
                                 v1::StreamRequest message);
  absl::StatusOr<v1::Reply> finish(const std::string& asked, uint64_t ticket, Instant deadline);
  absl::Status cancel_restore(const Session& session, uint64_t ticket, Instant deadline);
  // `why`: of a refusal, the daemon's own words.
  struct Event {
    memdecay_event event;
    absl::Status why;
  };
  absl::StatusOr<Event> next_event(Instant deadline);

  // ---- sessions (client_sessions.cc) ----
  absl::StatusOr<Session*> begin_session(const std::string& asked, const Session* parent,
                                         v1::StreamRequest message, SessionShape shape,
                                         Instant deadline);
  absl::Status close(Session& session, Keep keep);
  memdecay_session_info info(Session& session);
  absl::Status extend(Session& session, uint32_t pages, Instant deadline);
  absl::Status truncate(Session& session, uint32_t tokens, Instant deadline);
  absl::Status unpark(Session& session, Instant deadline);
  absl::Status wait_ready(Session& session, Instant deadline);
  absl::StatusOr<memdecay_lease> acquire(Session* session, v1::StreamRequest message,
                                         Instant deadline);

  // ---- pages and steps (client_steps.cc) ----
  const std::vector<memdecay_page>& page_table(Session& session);
  absl::Status seal(Session& session, const memdecay_seal_info& seal, Instant deadline);
  absl::Status written(Session& session, uint32_t position);
  absl::Status begin_step(Session& session);
  bool wants_masses(const Session& session) const;
  absl::Status end_step(Session& session, const memdecay_step& step, Instant deadline);
  void acknowledge(const memdecay_fence& fence);
  void set_acks(ClientOptions::Acks acks);

  // ---- fences and memory ----
  absl::StatusOr<memdecay_fence> next_fence(uint32_t word);
  absl::Status signal(const memdecay_fence& fence);
  absl::Status wait_fence(const memdecay_fence& fence, Instant deadline);
  uint64_t* timeline_words();
  SlabMap& slabs() { return slabs_; }

 private:
  enum class Link : uint8_t { kDown, kUp, kDetached, kStopped };

  Client(ClientOptions options, std::unique_ptr<cuda::Device> device)
      : options_(std::move(options)), slabs_(std::move(device)) {}

  // client.cc
  absl::Status check_callable(const std::string& asked) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status check_session(const std::string& asked, const Session& session) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  Outbox::Effect report_refusal(SessionId session);
  uint64_t post(SessionId session, v1::StreamRequest message, Outbox::Wait wait,
                Outbox::Effect effect) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<v1::Reply> await_reply(const std::string& asked, uint64_t ticket, Instant deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<v1::Reply> call_locked(const std::string& asked, const Session* session,
                                        v1::StreamRequest message, Instant deadline,
                                        Outbox::Effect effect)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status too_late(const std::string& asked) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  Session* find(SessionId session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void push(memdecay_event event, absl::Status why = {}) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // client_notices.cc
  void on_message(const v1::StreamResponse& message) override;
  void on_down(absl::Status why) override;
  void take_reply(const v1::Reply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void take_notice(Session& session, const v1::StreamResponse& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void take_evict(Session& session, const v1::EvictNotice& notice)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void take_withdraw(Session& session, const v1::WithdrawNotice& notice)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void take_released(Session& session, const v1::ReleasedNotice& notice)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void take_restore(Session& session, const v1::RestoreNotice& notice)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void take_trouble(Session& session, PageTrouble trouble, memdecay_event_kind kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Between steps, with automatic acknowledgement: what is pending happens now.
  void settle(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void apply_pending(Session& session, const memdecay_fence& fence)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void unmap_unused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // client_keeper.cc (the keeper's thread, or the connecting one before it runs)
  absl::Status attach(Instant deadline);
  absl::Status attach_handles(Instant deadline);
  absl::Status open_stream(Instant deadline);
  absl::Status take_frames();
  void take_frame(ReceivedFrame received);
  void take_timeline(UniqueFd descriptor);
  void take_welcome(const Welcome& welcome);
  void drop_stream(Link next);
  void keep();
  void keep_connected(Instant& next_attempt, Duration& back_off);
  void wait_for_work(Instant next_attempt);
  void refill() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void wake_keeper() const;
  Hello next_hello() const;

  // client_sessions.cc
  void want_refill(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t grants_ahead(const Session& session) const;
  uint64_t post_extend(Session& session, uint32_t pages, Outbox::Wait wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Session& adopt(const v1::SessionReply& reply, const SessionShape& shape)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status quiet_grants(Session& session, Instant deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // client_steps.cc
  enum class Protected : uint8_t { kNo, kYes };
  Outbox::Effect seal_effect(SessionId id, const memdecay_seal_info& seal, Protected pages);
  bool passed(const memdecay_fence& fence) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void close_passed_seals(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static v1::StreamRequest observation(const memdecay_step& step);

  const ClientOptions options_;
  SlabMap slabs_;

  // Keeper's own.
  std::optional<HandleLink> handles_;
  UniqueFd wake_;
  std::thread keeper_;

  mutable absl::Mutex mutex_;
  Link link_state_ ABSL_GUARDED_BY(mutex_) = Link::kDown;
  enum class Want : uint8_t { kUp, kDetached, kStopped } want_ ABSL_GUARDED_BY(mutex_) = Want::kUp;
  bool stream_broke_ ABSL_GUARDED_BY(mutex_) = false;
  bool engine_unknown_ ABSL_GUARDED_BY(mutex_) = false;   // attach anew
  uint32_t stream_failures_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last message
  std::unique_ptr<StreamLink> stream_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_notice_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t stream_users_ ABSL_GUARDED_BY(mutex_) = 0;  // lookups that use stream_ without the mutex
  Welcome welcome_ ABSL_GUARDED_BY(mutex_);
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<SessionId, std::unique_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Session>> orphans_ ABSL_GUARDED_BY(mutex_);
  ClientOptions::Acks acks_ ABSL_GUARDED_BY(mutex_) = ClientOptions::Acks::kAutomatic;
  enum class Answer : uint8_t { kNo, kYes };
  std::map<SlabId, Answer> leaving_slabs_ ABSL_GUARDED_BY(mutex_);
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  uint32_t lost_events_ ABSL_GUARDED_BY(mutex_) = 0;
  // The last one is in use; earlier ones stay mapped because words of them were handed out.
  std::deque<cuda::Timeline> timelines_ ABSL_GUARDED_BY(mutex_);
  uint64_t timeline_inode_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint32_t, uint64_t> fence_words_ ABSL_GUARDED_BY(mutex_);  // last value handed out
};

}  // namespace memdecay::client
