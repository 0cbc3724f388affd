// Outbox: numbers the messages of an engine's stream and keeps each until it is answered, so that
// after a reconnect they are sent again in order. An answer runs the message's effect (what it
// changes here) whether or not a caller still waits.
// Thread: the client's mutex guards it. Invariants: seq counts from 1 for each engine id; a message
// is settled once; tickets never repeat.
// Not here: sending (stream_link.h), waiting (client.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "memdecay/v1/memory.pb.h"
#include "proto/contract/error.h"

namespace memdecay::client {

class Outbox {
 public:
  // Under the client's mutex; the reply may carry an error.
  using Effect = std::function<void(const v1::Reply& reply)>;
  enum class Wait : uint8_t { kCaller, kNobody };

  // Ticket of the stored message, which has its seq.
  uint64_t add(v1::StreamRequest message, Wait wait, Effect effect);
  const v1::StreamRequest& message(uint64_t ticket) const { return entries_.at(ticket).message; }
  // Nothing once it was answered.
  std::optional<uint64_t> seq_of(uint64_t ticket) const;
  size_t unanswered() const { return tickets_.size(); }

  // Nothing: nobody has asked that (any more).
  std::optional<uint64_t> ticket_of(uint64_t seq) const;
  // False: nobody has asked that (any more).
  bool settle(const v1::Reply& reply);
  // It was refused unseen, because it named an epoch that was over: it gets a new number.
  const v1::StreamRequest& renumber(uint64_t ticket, uint32_t epoch);
  bool answered(uint64_t ticket) const;
  // Of an answered message that a caller waits for.
  v1::Reply take(uint64_t ticket);
  // The caller has gone; the effect will still run.
  void abandon(uint64_t ticket);
  // Of a message that is still unanswered; nothing happens otherwise.
  void replace_effect(uint64_t ticket, Effect effect);

  // In order of seq.
  template <typename Send>
  void each_unanswered(Send send) const {
    for (const auto& [seq, ticket] : tickets_) send(entries_.at(ticket).message);
  }
  // Everything unanswered is answered with this error: the engine that sent it is no more. seq
  // starts again from 1.
  void fail_all(const ErrorDetail& error);

 private:
  struct Entry {
    v1::StreamRequest message;
    Effect effect;
    Wait wait = Wait::kNobody;
    bool answered = false;
    v1::Reply reply;
  };

  void settle_ticket(uint64_t ticket, const v1::Reply& reply);

  std::map<uint64_t, Entry> entries_;     // by ticket
  std::map<uint64_t, uint64_t> tickets_;  // unanswered, by seq
  uint64_t last_ticket_ = 0;
  uint64_t last_seq_ = 0;
};

}  // namespace memdecay::client
