// Lives of the engine table: who is there, who has not been heard, who is gone (engine_table.h).
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/server/engine_table.h"
#include "proto/contract/error.h"

namespace memdecay::server {
namespace {

// A dead process' stream ends by itself; one that a child of it holds open is ended after this.
constexpr Duration kBuriedStream = Duration::from_milliseconds(2000);

// Every byte is looked at, so that the time says nothing about the token.
enum class Match : uint8_t { kNo, kYes };
Match compare(const Token& a, const Token& b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference = static_cast<uint8_t>(difference | (a[i] ^ b[i]));
  return difference == 0 ? Match::kYes : Match::kNo;
}

}  // namespace

absl::Status EngineTable::unknown_engine(EngineId engine) {
  return make_error(ErrorCode::kPermission, absl::StrCat("call as engine ", engine.value),
                    "no such engine, or another token", "attach through the handle socket first");
}

void EngineTable::add(const Caller& caller, const Token& token) {
  const absl::MutexLock lock(&mutex_);
  Link& fresh = links_[caller.engine];
  fresh.caller = caller;
  fresh.token = token;
  fresh.heard_at = clock_.now();
}

void EngineTable::set_epoch(EngineId engine, Epoch epoch) {
  const absl::MutexLock lock(&mutex_);
  Link* const known = link(engine);
  if (known == nullptr) return;
  // Numbers of messages go on: what was applied before the engine came back is answered from
  // memory when it is sent again, not applied twice.
  known->caller.epoch = epoch;
  hear(*known);
}

void EngineTable::post_behind(EngineId engine, ledger::Event event) {
  const absl::MutexLock lock(&mutex_);
  if (Link* const from = link(engine)) post_ordered(*from, std::move(event));
}

void EngineTable::bury(EngineId engine) {
  const absl::MutexLock lock(&mutex_);
  Link* const dead = link(engine);
  if (dead == nullptr || dead->life == Link::Life::kBuried) return;
  dead->life = Link::Life::kBuried;
  dead->buried_at = clock_.now();
  // Its stream may still hold messages; then the rest is done when it ends (detach_stream).
  if (dead->port == nullptr) {
    post_last(*dead);
  } else {
    read_if_room(*dead);
  }
}

void EngineTable::post_last(Link& from) {
  if (from.last == Link::Last::kPosted) return;
  from.last = Link::Last::kPosted;
  post_ordered(from, ledger::Disconnected{from.caller.engine});
}

EngineTable::Farewell EngineTable::disconnected_stepped(EngineId engine) {
  const absl::MutexLock lock(&mutex_);
  Link* const gone = link(engine);
  if (gone == nullptr) return Farewell::kNotYet;
  if (gone->farewells > 0) --gone->farewells;
  if (gone->farewells > 0 || gone->last == Link::Last::kNotPosted) return Farewell::kNotYet;
  links_.erase(engine);
  return Farewell::kOver;
}

void EngineTable::leave(EngineId engine) {
  const absl::MutexLock lock(&mutex_);
  Link* const known = link(engine);
  if (known != nullptr && known->life == Link::Life::kHere) known->life = Link::Life::kLeft;
}

absl::StatusOr<Caller> EngineTable::authenticate(EngineId engine, const Token& token) const {
  const absl::MutexLock lock(&mutex_);
  const Link* const known = link(engine);
  if (known == nullptr || known->life == Link::Life::kBuried ||
      compare(known->token, token) == Match::kNo) {
    return unknown_engine(engine);
  }
  return known->caller;
}

absl::StatusOr<Caller> EngineTable::find(EngineId engine) const {
  const absl::MutexLock lock(&mutex_);
  const Link* const known = link(engine);
  if (known == nullptr || known->life == Link::Life::kBuried) return unknown_engine(engine);
  return known->caller;
}

void EngineTable::hear(Link& from) {
  from.heard_at = clock_.now();
  from.quiet = Quiet::kIdle;
  if (from.flag == Link::Flag::kSpeaking) return;
  from.flag = Link::Flag::kSpeaking;
  reactor_->complete(ledger::Silence{from.caller.engine, ledger::Silence::Now::kSpeaking});
}

void EngineTable::heard(EngineId engine) {
  const absl::MutexLock lock(&mutex_);
  if (Link* const from = link(engine)) hear(*from);
}

std::vector<std::pair<EngineId, EngineTable::Quiet>> EngineTable::quiet() const {
  const Instant now = clock_.now();
  const absl::MutexLock lock(&mutex_);
  std::vector<std::pair<EngineId, Quiet>> found;
  for (const auto& [engine, known] : links_) {
    if (known.life != Link::Life::kHere || known.flag == Link::Flag::kSilent) continue;
    if (now - known.heard_at >= limits_.silent) found.emplace_back(engine, known.quiet);
  }
  return found;
}

void EngineTable::flag_silent(EngineId engine) {
  const absl::MutexLock lock(&mutex_);
  Link* const known = link(engine);
  if (known == nullptr || known->flag == Link::Flag::kSilent) return;
  known->flag = Link::Flag::kSilent;
  reactor_->complete(ledger::Silence{engine, ledger::Silence::Now::kSilent});
}

void EngineTable::close_buried() {
  const Instant now = clock_.now();
  const absl::MutexLock lock(&mutex_);
  for (auto& [engine, known] : links_) {
    if (known.life != Link::Life::kBuried || known.port == nullptr) continue;
    if (now - known.buried_at < kBuriedStream) continue;
    known.port->close(make_error(ErrorCode::kUnavailable, "keep this stream", "its process is gone",
                                 "attach again"));
  }
}

size_t EngineTable::owing() const {
  const absl::MutexLock lock(&mutex_);
  size_t count = 0;
  for (const auto& [engine, known] : links_) count += known.quiet == Quiet::kOwesAnswer ? 1 : 0;
  return count;
}

}  // namespace memdecay::server
