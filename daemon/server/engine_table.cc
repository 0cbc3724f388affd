// Streams of the engine table: what was applied, what waits, what is read next (engine_table.h).
#include "daemon/server/engine_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/server/to_wire.h"
#include "proto/contract/error.h"

namespace memdecay::server {

EngineTable::EngineTable(EdgeLimits limits, const base::Clock& clock,
                         std::function<void(EngineId)> cut)
    : limits_(limits), clock_(clock), cut_(std::move(cut)) {}

void EngineTable::bind(reactor::Reactor& reactor) { reactor_ = &reactor; }

EngineTable::Link* EngineTable::link(EngineId engine) {
  const auto found = links_.find(engine);
  return found == links_.end() ? nullptr : &found->second;
}

const EngineTable::Link* EngineTable::link(EngineId engine) const {
  const auto found = links_.find(engine);
  return found == links_.end() ? nullptr : &found->second;
}

absl::Status EngineTable::attach_stream(EngineId engine, StreamPort& port) {
  const absl::MutexLock lock(&mutex_);
  Link* const to = link(engine);
  if (to == nullptr || to->life == Link::Life::kBuried) return unknown_engine(engine);
  if (to->port != nullptr) {
    // The newer one counts: the older is a connection that has not been seen to break.
    to->port->close(make_error(ErrorCode::kUnavailable, "keep this stream",
                               "the engine has opened another one", "use that one"));
  }
  to->port = &port;
  to->writing = Link::Writing::kNo;
  to->reading = Link::Reading::kNo;
  hear(*to);
  write_next(*to);
  return absl::OkStatus();
}

void EngineTable::detach_stream(EngineId engine, StreamPort& port) {
  const absl::MutexLock lock(&mutex_);
  Link* const from = link(engine);
  if (from == nullptr || from->port != &port) return;
  from->port = nullptr;
  from->writing = Link::Writing::kNo;
  from->reading = Link::Reading::kNo;
  if (from->life == Link::Life::kBuried) post_last(*from);
}

void EngineTable::take_back(EngineId engine, ledger::Event event) {
  const absl::MutexLock lock(&mutex_);
  Link* const from = link(engine);
  if (from == nullptr) return;
  if (from->port != nullptr) {
    from->port->close(make_error(ErrorCode::kUnavailable, "keep this stream",
                                 "the engine attaches again", "open a new one"));
    from->port = nullptr;
    from->writing = Link::Writing::kNo;
    from->reading = Link::Reading::kNo;
  }
  post_ordered(*from, std::move(event));
}

EngineTable::Admission EngineTable::admit(EngineId engine, Epoch epoch, uint64_t seq,
                                          uint64_t session, const StreamPort* port) {
  const absl::MutexLock lock(&mutex_);
  Link* const from = link(engine);
  if (from == nullptr) return Admission::kHandled;
  // A stream that was taken over: its engine sends again, on the new one, what was not answered.
  if (port != nullptr && from->port != port) return Admission::kHandled;
  hear(*from);
  if (epoch != from->caller.epoch) {
    push(*from, error_reply_to_wire(
                    make_error(ErrorCode::kStaleEpoch, absl::StrCat("epoch ", epoch.value),
                               absl::StrCat("the engine is at epoch ", from->caller.epoch.value),
                               "attach again and use the new epoch"),
                    seq, session));
    return Admission::kHandled;
  }
  if (seq > from->last_seq) {
    from->last_seq = seq;
    from->unanswered.emplace(seq, RequestId{});
    return Admission::kFresh;
  }
  if (from->unanswered.contains(seq)) return Admission::kHandled;  // its answer is on the way
  const auto kept = from->answers.find(seq);
  if (kept != from->answers.end()) {
    push(*from, kept->second);
    return Admission::kHandled;
  }
  push(*from,
       error_reply_to_wire(make_error(ErrorCode::kInvalidArgument, absl::StrCat("message ", seq),
                                      absl::StrCat("the last one was ", from->last_seq,
                                                   "; its answer is not kept any more"),
                                      "count up from 1 and never repeat what was answered"),
                           seq, session));
  return Admission::kHandled;
}

void EngineTable::note_request(EngineId engine, uint64_t seq, RequestId request) {
  const absl::MutexLock lock(&mutex_);
  Link* const from = link(engine);
  if (from == nullptr) return;
  const auto open = from->unanswered.find(seq);
  if (open != from->unanswered.end()) open->second = request;
}

std::optional<RequestId> EngineTable::request_of(EngineId engine, uint64_t seq) const {
  const absl::MutexLock lock(&mutex_);
  const Link* const from = link(engine);
  if (from == nullptr) return std::nullopt;
  const auto open = from->unanswered.find(seq);
  if (open == from->unanswered.end() || !open->second) return std::nullopt;
  return open->second;
}

void EngineTable::post(EngineId engine, ledger::Event event) {
  const absl::MutexLock lock(&mutex_);
  Link* const from = link(engine);
  if (from != nullptr) post_ordered(*from, std::move(event));
}

void EngineTable::post_ordered(Link& from, ledger::Event event) {
  if (std::holds_alternative<ledger::Disconnected>(event)) ++from.farewells;
  // A copy is offered: a full lane must not swallow the event.
  if (from.parked.empty() && reactor_->post_stream(event) == reactor::Posted::kTaken) return;
  from.parked.push_back(std::move(event));
}

void EngineTable::unpark(Link& from) {
  while (!from.parked.empty()) {
    if (reactor_->post_stream(from.parked.front()) == reactor::Posted::kFull) return;
    from.parked.pop_front();
  }
}

void EngineTable::stream_room() {
  const absl::MutexLock lock(&mutex_);
  for (auto& [engine, from] : links_) {
    unpark(from);
    read_if_room(from);
  }
}

void EngineTable::answer(EngineId engine, uint64_t seq, v1::StreamResponse response) {
  const absl::MutexLock lock(&mutex_);
  Link* const to = link(engine);
  if (to == nullptr || to->unanswered.erase(seq) == 0) return;
  to->answers.emplace(seq, response);
  if (to->answers.size() > limits_.replay) to->answers.erase(to->answers.begin());
  push(*to, std::move(response));
  read_if_room(*to);
}

void EngineTable::read_on(EngineId engine, StreamPort& port) {
  const absl::MutexLock lock(&mutex_);
  Link* const from = link(engine);
  if (from == nullptr || from->port != &port || from->reading == Link::Reading::kOver) return;
  from->reading = Link::Reading::kPaused;
  read_if_room(*from);
}

void EngineTable::read_if_room(Link& from) {
  if (from.port == nullptr || from.reading != Link::Reading::kPaused) return;
  if (!from.parked.empty() || from.unanswered.size() >= limits_.stream_window) return;
  from.reading = Link::Reading::kNo;
  from.port->read();
}

void EngineTable::end_when_answered(EngineId engine, StreamPort& port) {
  const absl::MutexLock lock(&mutex_);
  Link* const from = link(engine);
  if (from == nullptr || from->port != &port) return;
  from->reading = Link::Reading::kOver;
  end_if_answered(*from);
}

void EngineTable::end_if_answered(Link& of) {
  if (of.port == nullptr || of.reading != Link::Reading::kOver) return;
  if (of.unanswered.empty() && of.outbox.empty()) of.port->close(absl::OkStatus());
}

void EngineTable::written(EngineId engine, StreamPort& port) {
  const absl::MutexLock lock(&mutex_);
  Link* const to = link(engine);
  if (to == nullptr || to->port != &port) return;
  to->writing = Link::Writing::kNo;
  if (!to->outbox.empty()) to->outbox.pop_front();
  write_next(*to);
  end_if_answered(*to);
}

void EngineTable::push(Link& to, v1::StreamResponse message) {
  if (to.life == Link::Life::kBuried) return;
  if (to.outbox.size() >= limits_.stream_queue) {
    // It does not read. Nothing is taken from it; it may come back and starts from a fresh queue.
    to.outbox.clear();
    if (to.port != nullptr) {
      to.port->close(make_error(ErrorCode::kUnavailable, "keep this stream",
                                absl::StrCat(limits_.stream_queue, " messages wait unread"),
                                "read the stream without pause; attach again"));
      to.writing = Link::Writing::kNo;
      to.port = nullptr;
    }
    cut_(to.caller.engine);
    return;
  }
  to.outbox.push_back(std::move(message));
  write_next(to);
}

void EngineTable::write_next(Link& to) {
  if (to.port == nullptr || to.writing == Link::Writing::kYes || to.outbox.empty()) return;
  to.writing = Link::Writing::kYes;
  to.port->write(to.outbox.front());
}

void EngineTable::notify(const ledger::Notice& notice) {
  v1::StreamResponse message = notice_to_wire(notice);
  const absl::MutexLock lock(&mutex_);
  Link* const to = link(notice.engine);
  if (to == nullptr) return;
  message.set_seq(++to->notices);
  if (answer_owed(notice) == Owed::kYes) {
    // Silence is counted from the question on, not from before it.
    if (to->quiet == Quiet::kIdle) to->heard_at = clock_.now();
    to->quiet = Quiet::kOwesAnswer;
  }
  push(*to, std::move(message));
}

void EngineTable::remember_slab(const ledger::ShareSlab& share) {
  const absl::MutexLock lock(&mutex_);
  if (Link* const to = link(share.engine)) to->slabs[share.slab] = share.access;
}

void EngineTable::forget_slab(EngineId engine, SlabId slab) {
  const absl::MutexLock lock(&mutex_);
  if (Link* const to = link(engine)) to->slabs.erase(slab);
}

std::vector<ledger::ShareSlab> EngineTable::slabs_of(EngineId engine) const {
  const absl::MutexLock lock(&mutex_);
  std::vector<ledger::ShareSlab> slabs;
  const Link* const of = link(engine);
  if (of == nullptr) return slabs;
  for (const auto& [slab, access] : of->slabs) slabs.push_back({engine, slab, access});
  return slabs;
}

size_t EngineTable::messages_waiting() const {
  const absl::MutexLock lock(&mutex_);
  size_t count = 0;
  for (const auto& [engine, known] : links_) {
    if (known.port != nullptr) count += known.outbox.size() + known.parked.size();
  }
  return count;
}

void EngineTable::end_all() {
  const absl::MutexLock lock(&mutex_);
  for (auto& [engine, known] : links_) {
    known.reading = Link::Reading::kOver;
    end_if_answered(known);
  }
}

}  // namespace memdecay::server
