// Client: calls and their replies, events, fences.
// Thread: any; see client.h.
#include "client/lib/client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/convert.h"
#include "client/lib/limits.h"
#include "client/lib/steady_clock.h"
#include "proto/contract/text.h"

namespace memdecay::client {

Client::~Client() {
  {
    absl::MutexLock lock(&mutex_);
    want_ = Want::kStopped;
  }
  wake_keeper();
  if (keeper_.joinable()) keeper_.join();
  drop_stream(Link::kStopped);
}

memdecay_identity Client::identity() const {
  absl::MutexLock lock(&mutex_);
  memdecay_identity out{};
  out.engine = welcome_.engine.value;
  out.epoch = welcome_.epoch.value;
  out.member = welcome_.member;
  std::copy(welcome_.token.begin(), welcome_.token.end(), out.token);
  return out;
}

bool Client::connected() const {
  absl::MutexLock lock(&mutex_);
  return link_state_ == Link::kUp;
}

Instant Client::deadline_in(int32_t timeout_ms) const {
  if (timeout_ms < 0) return now();
  return now() + (timeout_ms == 0 ? options_.timeout : Duration::from_milliseconds(timeout_ms));
}

Session* Client::find(SessionId session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second.get();
}

absl::Status Client::check_callable(const std::string& asked) const {
  if (options_.hello.role == MemberRole::kWorker) {
    return make_error(ErrorCode::kUnsupported, asked, "this member is a worker",
                      "let the engine's scheduler member speak for it");
  }
  if (link_state_ == Link::kUp && outbox_.unanswered() < kMaxUnanswered - kAckReserve) {
    return absl::OkStatus();
  }
  if (link_state_ == Link::kDetached) {
    return make_error(ErrorCode::kUnavailable, asked, "this client is detached",
                      "call memdecay_reattach");
  }
  return make_error({ErrorCode::kUnavailable, asked,
                     link_state_ == Link::kUp ? "the daemon has not answered thousands of messages"
                                              : "the daemon is not connected",
                     "go on with the pages there are and ask again; the client connects by itself",
                     100});
}

absl::Status Client::check_session(const std::string& asked, const Session& session) const {
  if (!session.orphaned) return absl::OkStatus();
  return make_error(ErrorCode::kStaleEpoch, asked,
                    absl::StrCat("session ", session.id.value,
                                 " belonged to a daemon or an engine id that is gone"),
                    "close it and open or resume a session; its pages stay readable until then");
}

absl::Status Client::too_late(const std::string& asked) const {
  if (link_state_ != Link::kUp) return check_callable(asked);
  return make_error(ErrorCode::kDeadline, asked, "no answer in time",
                    "ask again with more time; see `memdecayctl status`");
}

uint64_t Client::post(SessionId session, v1::StreamRequest message, Outbox::Wait wait,
                      Outbox::Effect effect) {
  message.set_epoch(welcome_.epoch.value);
  message.set_session(session.value);
  const uint64_t ticket = outbox_.add(std::move(message), wait, std::move(effect));
  if (link_state_ == Link::kUp && stream_ != nullptr) stream_->send(outbox_.message(ticket));
  return ticket;
}

absl::StatusOr<v1::Reply> Client::await_reply(const std::string& asked, uint64_t ticket,
                                              Instant deadline) {
  const auto answered = [this, ticket] {
    mutex_.AssertReaderHeld();
    return outbox_.answered(ticket);
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&answered), left_until(deadline))) {
    outbox_.abandon(ticket);
    return too_late(asked);
  }
  v1::Reply reply = outbox_.take(ticket);
  if (reply.has_error()) return make_error(error_of(reply.error()));
  return reply;
}

absl::StatusOr<v1::Reply> Client::call_locked(const std::string& asked, const Session* session,
                                              v1::StreamRequest message, Instant deadline,
                                              Outbox::Effect effect) {
  if (session != nullptr) {
    if (absl::Status status = check_session(asked, *session); !status.ok()) return status;
  }
  if (absl::Status status = check_callable(asked); !status.ok()) return status;
  const SessionId id = session == nullptr ? SessionId{} : session->id;
  const uint64_t ticket = post(id, std::move(message), Outbox::Wait::kCaller, std::move(effect));
  return await_reply(asked, ticket, deadline);
}

absl::StatusOr<v1::Reply> Client::call(const std::string& asked, const Session* session,
                                       v1::StreamRequest message, Instant deadline,
                                       Outbox::Effect effect) {
  absl::MutexLock lock(&mutex_);
  return call_locked(asked, session, std::move(message), deadline, std::move(effect));
}

absl::StatusOr<uint64_t> Client::start(const std::string& asked, const Session& session,
                                       v1::StreamRequest message) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = check_session(asked, session); !status.ok()) return status;
  if (absl::Status status = check_callable(asked); !status.ok()) return status;
  return post(session.id, std::move(message), Outbox::Wait::kCaller, nullptr);
}

absl::StatusOr<v1::Reply> Client::finish(const std::string& asked, uint64_t ticket,
                                         Instant deadline) {
  absl::MutexLock lock(&mutex_);
  return await_reply(asked, ticket, deadline);
}

absl::Status Client::cancel_restore(const Session& session, uint64_t ticket, Instant deadline) {
  const std::string asked = absl::StrCat("cancel a restore of session ", session.id.value);
  absl::MutexLock lock(&mutex_);
  const std::optional<uint64_t> seq = outbox_.seq_of(ticket);
  if (!seq) {
    return make_error(ErrorCode::kNotFound, asked, "it was answered already", "nothing to do");
  }
  v1::StreamRequest message;
  message.mutable_cancel_restore()->set_restore(*seq);
  return call_locked(asked, &session, std::move(message), deadline, nullptr).status();
}

Outbox::Effect Client::report_refusal(SessionId session) {
  return [this, session](const v1::Reply& reply) {
    mutex_.AssertHeld();
    if (!reply.has_error()) return;
    memdecay_event event{};
    event.kind = MEMDECAY_EVENT_REFUSED;
    event.session = session.value;
    absl::Status why = make_error(error_of(reply.error()));
    event.code = static_cast<memdecay_code>(error_code(why));
    push(event, std::move(why));
  };
}

absl::Status Client::tell(const std::string& asked, const Session& session,
                          v1::StreamRequest message) {
  absl::MutexLock lock(&mutex_);
  if (absl::Status status = check_session(asked, session); !status.ok()) return status;
  if (outbox_.unanswered() >= kMaxUnanswered - kAckReserve) return check_callable(asked);
  post(session.id, std::move(message), Outbox::Wait::kNobody, report_refusal(session.id));
  return absl::OkStatus();
}

absl::StatusOr<v1::LookupResponse> Client::lookup(const v1::LookupRequest& request,
                                                  Instant deadline) {
  StreamLink* stream = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status status = check_callable("lookup"); !status.ok()) return status;
    stream = stream_.get();
    ++stream_users_;
  }
  auto response = stream->lookup(request, {absl::ToInt64Nanoseconds(left_until(deadline))});
  absl::MutexLock lock(&mutex_);
  --stream_users_;
  return response;
}

void Client::push(memdecay_event event, absl::Status why) {
  if (events_.size() >= kMaxEvents) {
    events_.pop_front();
    ++lost_events_;
  }
  events_.push_back({event, std::move(why)});
}

absl::StatusOr<Client::Event> Client::next_event(Instant deadline) {
  absl::MutexLock lock(&mutex_);
  const auto waiting = [this] {
    mutex_.AssertReaderHeld();
    return !events_.empty();
  };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&waiting), left_until(deadline))) {
    return make_error(ErrorCode::kDeadline, "the next event", "none came", "ask again later");
  }
  Event next = std::move(events_.front());
  events_.pop_front();
  next.event.lost_events = std::exchange(lost_events_, 0);
  return next;
}

absl::StatusOr<memdecay_fence> Client::next_fence(uint32_t word) {
  if (word >= kEngineWords) {
    return make_error(ErrorCode::kOutOfRange, absl::StrCat("timeline word ", word),
                      absl::StrCat("an engine has words 0 to ", kEngineWords - 1),
                      "use one of them");
  }
  absl::MutexLock lock(&mutex_);
  return memdecay_fence{welcome_.member, word, ++fence_words_[word]};
}

absl::Status Client::signal(const memdecay_fence& fence) {
  absl::MutexLock lock(&mutex_);
  if (fence.word >= kEngineWords || timelines_.empty()) {
    return make_error(ErrorCode::kOutOfRange, absl::StrCat("timeline word ", fence.word),
                      timelines_.empty() ? "no timeline page has arrived" : "it is not an engine's",
                      "signal only fences that memdecay_fence_next gave");
  }
  timelines_.back().signal(fence.word, fence.value);
  return absl::OkStatus();
}

absl::Status Client::wait_fence(const memdecay_fence& fence, Instant deadline) {
  const cuda::Timeline* timeline = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (fence.value == 0) return absl::OkStatus();
    if (timelines_.empty() || fence.member != welcome_.member) {
      return make_error(ErrorCode::kOutOfRange, absl::StrCat("a fence of member ", fence.member),
                        absl::StrCat("this is member ", welcome_.member),
                        "wait in the process that owns it");
    }
    timeline = &timelines_.back();
  }
  return timeline->wait(fence.word, fence.value, {absl::ToInt64Nanoseconds(left_until(deadline))});
}

uint64_t* Client::timeline_words() {
  absl::MutexLock lock(&mutex_);
  return timelines_.empty() ? nullptr : timelines_.back().view().address(0);
}

bool Client::passed(const memdecay_fence& fence) const {
  if (fence.value == 0) return true;
  if (timelines_.empty() || fence.member != welcome_.member) return false;
  return timelines_.back().poll(fence.word, fence.value).value_or(false);
}

}  // namespace memdecay::client
