// Outbox: numbered, replayable messages.
// Thread: the client's mutex guards it; see outbox.h.
#include "client/lib/outbox.h"

#include <utility>

#include "proto/contract/check.h"

namespace memdecay::client {

uint64_t Outbox::add(v1::StreamRequest message, Wait wait, Effect effect) {
  const uint64_t ticket = ++last_ticket_;
  const uint64_t seq = ++last_seq_;
  Entry& entry = entries_[ticket];
  entry.message = std::move(message);
  entry.message.set_seq(seq);
  entry.effect = std::move(effect);
  entry.wait = wait;
  tickets_[seq] = ticket;
  return ticket;
}

std::optional<uint64_t> Outbox::seq_of(uint64_t ticket) const {
  const auto found = entries_.find(ticket);
  if (found == entries_.end() || found->second.answered) return std::nullopt;
  return found->second.message.seq();
}

std::optional<uint64_t> Outbox::ticket_of(uint64_t seq) const {
  const auto found = tickets_.find(seq);
  if (found == tickets_.end()) return std::nullopt;
  return found->second;
}

const v1::StreamRequest& Outbox::renumber(uint64_t ticket, uint32_t epoch) {
  Entry& entry = entries_.at(ticket);
  tickets_.erase(entry.message.seq());
  entry.message.set_seq(++last_seq_);
  entry.message.set_epoch(epoch);
  tickets_[last_seq_] = ticket;
  return entry.message;
}

bool Outbox::settle(const v1::Reply& reply) {
  const std::optional<uint64_t> ticket = ticket_of(reply.re());
  if (!ticket) return false;
  settle_ticket(*ticket, reply);
  return true;
}

void Outbox::settle_ticket(uint64_t ticket, const v1::Reply& reply) {
  Entry& entry = entries_.at(ticket);
  entry.answered = true;
  tickets_.erase(entry.message.seq());
  // An effect may add messages: references into the map stay valid.
  if (entry.effect) std::exchange(entry.effect, nullptr)(reply);
  if (entry.wait == Wait::kNobody) {
    entries_.erase(ticket);
  } else {
    entry.reply = reply;
  }
}

bool Outbox::answered(uint64_t ticket) const {
  const auto found = entries_.find(ticket);
  return found != entries_.end() && found->second.answered;
}

v1::Reply Outbox::take(uint64_t ticket) {
  const auto found = entries_.find(ticket);
  MEMDECAY_CHECK(found != entries_.end() && found->second.answered);
  v1::Reply reply = std::move(found->second.reply);
  entries_.erase(found);
  return reply;
}

void Outbox::abandon(uint64_t ticket) {
  const auto found = entries_.find(ticket);
  if (found == entries_.end()) return;
  found->second.wait = Wait::kNobody;
  if (found->second.answered) entries_.erase(found);
}

void Outbox::replace_effect(uint64_t ticket, Effect effect) {
  const auto found = entries_.find(ticket);
  if (found != entries_.end() && !found->second.answered) found->second.effect = std::move(effect);
}

void Outbox::fail_all(const ErrorDetail& error) {
  v1::Reply reply;
  reply.mutable_error()->set_code(static_cast<v1::ErrorCode>(error.code));
  reply.mutable_error()->set_asked(error.asked);
  reply.mutable_error()->set_there(error.there);
  reply.mutable_error()->set_todo(error.todo);
  last_seq_ = 0;
  const std::map<uint64_t, uint64_t> open = tickets_;
  for (const auto& [seq, ticket] : open) settle_ticket(ticket, reply);
}

}  // namespace memdecay::client
