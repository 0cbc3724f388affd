// Client: connecting, attaching again after the daemon was away, descriptors that arrive, grants
// ahead of need. Back-off doubles from kFirstBackOff to kLastBackOff until a message arrives.
// Thread: the keeper's; the connecting thread's before the keeper runs. It never waits for the
// daemon without a deadline.
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/client.h"
#include "client/lib/limits.h"
#include "client/lib/steady_clock.h"
#include "cuda/host_device.h"

namespace memdecay::client {
namespace {

// A refusal of our secret, as opposed to a daemon that is not there or is busy.
bool refuses_identity(ErrorCode code) {
  switch (code) {
    case ErrorCode::kStaleEpoch:
    case ErrorCode::kNotFound:
    case ErrorCode::kPermission:
    case ErrorCode::kInvalidArgument:
      return true;
    default:
      return false;
  }
}

memdecay_event plain_event(memdecay_event_kind kind) {
  memdecay_event event{};
  event.kind = kind;
  return event;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::connect(ClientOptions options) {
  auto device = cuda::create_host_device({});
  if (!device.ok()) return device.status();
  std::unique_ptr<Client> client(new Client(std::move(options), *std::move(device)));
  client->wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  client->set_acks(client->options_.acks);
  const Instant deadline = now() + client->options_.timeout;
  if (absl::Status status = client->attach(deadline); !status.ok()) return status;
  // Signals are the engine's, not this thread's.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  client->keeper_ = std::thread([raw = client.get()] { raw->keep(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return client;
}

void Client::wake_keeper() const {
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void Client::leave() {
  v1::StreamRequest message;
  message.mutable_leave();
  (void)call("leave", nullptr, std::move(message), now() + Duration::from_milliseconds(1000));
  {
    absl::MutexLock lock(&mutex_);
    want_ = Want::kStopped;
  }
  wake_keeper();
  if (keeper_.joinable()) keeper_.join();
  if (handles_) handles_->say_goodbye();
}

absl::Status Client::detach() {
  absl::MutexLock lock(&mutex_);
  want_ = Want::kDetached;
  wake_keeper();
  const auto detached = [this] {
    mutex_.AssertReaderHeld();
    return link_state_ == Link::kDetached;
  };
  const Instant deadline = now() + options_.timeout + kAttempt;
  if (mutex_.AwaitWithTimeout(absl::Condition(&detached), left_until(deadline))) {
    return absl::OkStatus();
  }
  return too_late("detach");
}

absl::Status Client::reattach(Instant deadline) {
  absl::MutexLock lock(&mutex_);
  want_ = Want::kUp;
  wake_keeper();
  const auto up = [this] {
    mutex_.AssertReaderHeld();
    return link_state_ == Link::kUp;
  };
  if (mutex_.AwaitWithTimeout(absl::Condition(&up), left_until(deadline))) return absl::OkStatus();
  return too_late("reattach");
}

Hello Client::next_hello() const {
  Hello hello = options_.hello;
  absl::MutexLock lock(&mutex_);
  if (welcome_.engine && !engine_unknown_) {
    hello.engine = welcome_.engine;
    hello.epoch = welcome_.epoch;
    hello.token = welcome_.token;
  }
  return hello;
}

absl::Status Client::attach(Instant deadline) {
  if (!handles_) {
    if (absl::Status status = attach_handles(deadline); !status.ok()) return status;
  }
  if (options_.hello.role == MemberRole::kScheduler) return open_stream(deadline);
  absl::MutexLock lock(&mutex_);
  link_state_ = Link::kUp;
  return absl::OkStatus();
}

absl::Status Client::attach_handles(Instant deadline) {
  const Hello hello = next_hello();
  auto link = HandleLink::attach(options_.socket_path, hello, deadline);
  if (!link.ok()) {
    absl::MutexLock lock(&mutex_);
    const bool as_ourselves = hello.engine && hello.engine == welcome_.engine;
    if (as_ourselves && refuses_identity(error_code(link.status()))) engine_unknown_ = true;
    return link.status();
  }
  handles_ = *std::move(link);
  take_welcome(handles_->welcome());
  // The timeline page belongs to the attach: fences must work once connect returns.
  for (;;) {
    if (absl::Status status = take_frames(); !status.ok()) return status;
    {
      absl::MutexLock lock(&mutex_);
      if (!timelines_.empty()) return absl::OkStatus();
    }
    if (left_milliseconds(deadline) == 0) {
      handles_.reset();
      return make_error(ErrorCode::kDeadline, "attach", "no timeline page came",
                        "see the daemon's log");
    }
    handles_->wait_readable(deadline);
  }
}

void Client::take_welcome(const Welcome& welcome) {
  absl::MutexLock lock(&mutex_);
  // A restarted daemon counts engines from 1 again: the secret tells them apart.
  const bool other =
      welcome_.engine && (welcome.engine != welcome_.engine || welcome.token != welcome_.token);
  welcome_ = welcome;
  engine_unknown_ = false;
  stream_failures_ = 0;
  if (!other) return;
  outbox_.fail_all({ErrorCode::kStaleEpoch, "what was not answered yet",
                    "the daemon no longer knows this engine (it was restarted)",
                    "close the sessions and open or resume them"});
  for (auto& [id, session] : sessions_) {
    session->orphaned = true;
    session->extend_in_flight = false;
    session->table.orphan();
    orphans_.push_back(std::move(session));
  }
  sessions_.clear();
  leaving_slabs_.clear();
  fence_words_.clear();
  last_notice_ = 0;
  slabs_.retire_all();
  if (orphans_.empty()) slabs_.drop_retired();
  push(plain_event(MEMDECAY_EVENT_RESET));
}

absl::Status Client::open_stream(Instant deadline) {
  Welcome welcome;
  {
    absl::MutexLock lock(&mutex_);
    welcome = welcome_;
    stream_broke_ = false;
  }
  auto stream = StreamLink::open(welcome.control_path, welcome.engine, welcome.token, *this,
                                 {absl::ToInt64Nanoseconds(left_until(deadline))});
  if (!stream.ok()) return stream.status();
  absl::MutexLock lock(&mutex_);
  stream_ = *std::move(stream);
  if (stream_broke_) return check_callable("open the engine's stream");
  link_state_ = Link::kUp;
  outbox_.each_unanswered([this](const v1::StreamRequest& message) {
    mutex_.AssertHeld();
    v1::StreamRequest again = message;
    again.set_epoch(welcome_.epoch.value);
    stream_->send(std::move(again));
  });
  return absl::OkStatus();
}

void Client::drop_stream(Link next) {
  std::unique_ptr<StreamLink> old;
  {
    absl::MutexLock lock(&mutex_);
    link_state_ = next;
    // The stream of a daemon that is going away ends by itself, with its last words before.
    const auto over = [this] {
      mutex_.AssertReaderHeld();
      return stream_ == nullptr || stream_broke_;
    };
    if (next == Link::kDown)
      mutex_.AwaitWithTimeout(absl::Condition(&over),
                              absl::Nanoseconds(kLastWordsWait.nanoseconds));
    const auto unused = [this] {
      mutex_.AssertReaderHeld();
      return stream_users_ == 0;
    };
    mutex_.Await(absl::Condition(&unused));  // bounded: lookups have deadlines
    old = std::move(stream_);
  }
  old.reset();  // waits for gRPC's last callback, which takes the mutex
}

absl::Status Client::take_frames() {
  auto frames = handles_->receive();
  if (!frames.ok()) {
    handles_.reset();
    return frames.status();
  }
  for (ReceivedFrame& received : *frames) take_frame(std::move(received));
  return absl::OkStatus();
}

void Client::take_frame(ReceivedFrame received) {
  if (const auto* slab = std::get_if<SlabFd>(&received.frame)) {
    // A slab that cannot be mapped stays unknown: calls that need it end at their deadline.
    if (!slabs_.add(*slab, std::move(received.fds.front())).ok()) return;
    absl::MutexLock lock(&mutex_);
    for (auto& [id, session] : sessions_) {
      session->table.resolve();
      settle(*session);
    }
  } else if (std::holds_alternative<TimelineFd>(received.frame)) {
    take_timeline(std::move(received.fds.front()));
  } else if (const auto* gone = std::get_if<SlabGone>(&received.frame)) {
    absl::MutexLock lock(&mutex_);
    leaving_slabs_.try_emplace(gone->slab, Answer::kNo);
    unmap_unused();
  }
}

void Client::take_timeline(UniqueFd descriptor) {
  struct stat info {};
  if (::fstat(descriptor.get(), &info) != 0) return;
  absl::MutexLock lock(&mutex_);
  if (!timelines_.empty() && timeline_inode_ == info.st_ino) return;
  auto timeline = cuda::Timeline::adopt(std::move(descriptor));
  if (!timeline.ok()) return;
  // Fences that were handed out before and have passed must stay passed on the new page.
  if (!timelines_.empty()) {
    for (const auto& [word, last] : fence_words_) {
      timeline->signal(word, timelines_.back().view().load(word));
    }
  }
  timelines_.push_back(*std::move(timeline));
  timeline_inode_ = info.st_ino;
}

void Client::keep() {
  Instant next_attempt = now();
  Duration back_off = kFirstBackOff;
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (want_ == Want::kStopped) return;
    }
    keep_connected(next_attempt, back_off);
    {
      absl::MutexLock lock(&mutex_);
      if (link_state_ == Link::kUp) refill();
    }
    wait_for_work(next_attempt);
    if (!handles_ || take_frames().ok()) continue;
    absl::MutexLock lock(&mutex_);
    if (link_state_ != Link::kUp) continue;
    link_state_ = Link::kDown;
    push(plain_event(MEMDECAY_EVENT_DISCONNECTED));
  }
}

void Client::keep_connected(Instant& next_attempt, Duration& back_off) {
  bool detach = false;
  bool healthy = false;
  bool start_over = false;
  bool detached = false;
  {
    absl::MutexLock lock(&mutex_);
    detach = want_ == Want::kDetached;
    detached = link_state_ == Link::kDetached;
    healthy = link_state_ == Link::kUp && !stream_broke_ && handles_.has_value();
    start_over = engine_unknown_ || stream_failures_ >= 2;
    if (healthy && stream_failures_ == 0) back_off = kFirstBackOff;
  }
  if (detach) {
    if (detached) return;
    handles_.reset();
    drop_stream(Link::kDetached);
    return;
  }
  if (healthy || now() < next_attempt) return;
  if (handles_) (void)take_frames();  // its end may have come with the stream's
  drop_stream(Link::kDown);
  if (start_over) handles_.reset();
  const absl::Status status = attach(now() + kAttempt);
  next_attempt = now() + back_off;
  back_off = std::min(kLastBackOff, Duration{back_off.nanoseconds * 2});
  absl::MutexLock lock(&mutex_);
  if (status.ok()) push(plain_event(MEMDECAY_EVENT_CONNECTED));
}

void Client::wait_for_work(Instant next_attempt) {
  int timeout = -1;
  {
    absl::MutexLock lock(&mutex_);
    const bool idle = link_state_ == Link::kUp || link_state_ == Link::kDetached;
    if (!idle || stream_broke_) timeout = left_milliseconds(next_attempt);
  }
  pollfd wait[2] = {{wake_.get(), POLLIN, 0}, {handles_ ? handles_->fd() : -1, POLLIN, 0}};
  ::poll(wait, 2, timeout);
  uint64_t woken = 0;
  (void)!::read(wake_.get(), &woken, sizeof woken);
}

void Client::refill() {
  for (auto& [id, session] : sessions_) {
    if (!std::exchange(session->refill_wanted, false) || session->extend_in_flight) continue;
    const uint32_t ahead = session->table.granted_ahead();
    const uint32_t target = grants_ahead(*session);
    if (ahead < target) post_extend(*session, target - ahead, Outbox::Wait::kNobody);
  }
}

}  // namespace memdecay::client
