// Rest and time of the real world. The daemon's clock stands but for tick and for statements that
// wait, as in simulation; when the world rests is a matter of conditions, never of waiting long
// enough. See real_world.h; the daemon's part is in tests/lab/lab_rest.h.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/scenario/real_world.h"

namespace memdecay::scenario {
namespace {

constexpr Duration kLook = Duration::from_milliseconds(1);
constexpr int kMostLooks = 5000;
constexpr int kMostRounds = 1000;
constexpr int kMostRoundsUnmapped = 500;  // a slab that cannot be mapped is the script's affair
// `within` is a limit of the machine's clock; what is longer is the daemon's time.
constexpr Duration kMostAwake = Duration::from_seconds(1);

}  // namespace

absl::Status RealWorld::stand() {
  v1::TickRequest request;
  v1::TickResponse response;
  request.set_stand(true);
  return admin_->call(request, response);
}

absl::StatusOr<v1::SettleResponse> RealWorld::look(const v1::SettleRequest& request) {
  v1::SettleResponse response;
  if (absl::Status looked = admin_->call(request, response); !looked.ok()) return looked;
  return response;
}

// The last request is at the daemon or has its answer: before the daemon can be asked whether it
// rests. Since the world rested when it was sent, the ledger's next step is due to it.
void RealWorld::arrive() {
  v1::SettleRequest request;
  request.set_look_only(true);
  const Ticket newest = std::exchange(newest_, {});
  for (int looks = 0; looks < kMostLooks; ++looks) {
    const auto found = asked_.find(newest);
    if (found == asked_.end()) return;
    Asked& asked = *found->second;
    if (asked.process != nullptr) {
      if (asked.process->has_answer(asked.request)) return;
    } else {
      std::unique_lock lock(mutex_);
      if (arrived_.wait_for(lock, std::chrono::nanoseconds(kLook.nanoseconds),
                            [&] { return asked.done; })) {
        return;
      }
    }
    const auto now = look(request);
    if (!now.ok() || now->steps() != steps_) return;
  }
}

// Every engine that can speak asks the daemon something and has the answer. Thus it has also done
// what the daemon said before, and the daemon has what came of it. A refused message gives nothing
// to rely on and is an error.
absl::StatusOr<RealWorld::Passed> RealWorld::pass_engines() {
  std::vector<std::pair<Engine*, uint64_t>> passing;
  for (auto& [name, engine] : engines_) {
    if (engine.life == Life::kAlive) {
      passing.emplace_back(&engine, engine.process->request("pass"));
    }
  }
  Passed passed;
  absl::Status refused;
  for (const auto& [engine, request] : passing) {
    const std::optional<WireWords> words = engine->process->wait(request, kCommand);
    if (!words) return make_error(ErrorCode::kDeadline, engine->spec.name, "does not answer");
    if (absl::Status status = answered_status(*words); !status.ok()) {
      refused = std::move(status);
      continue;
    }
    engine->id = words->number("engine");
    passed.messages += words->number("messages");
    passed.unmapped += words->number("unmapped");
  }
  if (!refused.ok()) return refused;
  return passed;
}

v1::SettleRequest RealWorld::what_moves() const {
  v1::SettleRequest request;
  request.add_engines(0);  // nobody; an empty list would be everybody
  for (const auto& [name, engine] : engines_) {
    if (engine.life != Life::kAlive) continue;
    if (engine.acks == Engine::Acks::kAutomatic) request.add_engines(engine.id);
    for (const auto& [word, value] : engine.signalled) {
      v1::SignalledFence& fence = *request.add_fences();
      fence.set_engine(engine.id);
      fence.set_member(word.first);
      fence.set_word(word.second);
      fence.set_value(value);
    }
  }
  return request;
}

// Requests whose answers have not come through to us.
size_t RealWorld::unanswered() {
  size_t count = 0;
  for (const auto& [ticket, asked] : asked_) {
    if (asked->unparks) continue;
    if (asked->process == nullptr) {
      const std::lock_guard lock(mutex_);
      count += asked->done ? 0 : 1;
    } else if (can_speak(asked->engine)) {
      count += asked->process->has_answer(asked->request) ? 0 : 1;
    }
  }
  return count;
}

absl::Status RealWorld::settle() {
  if (!daemon_->running()) return absl::OkStatus();
  arrive();
  uint64_t waiting = 0;
  for (int round = 0;; ++round) {
    if (round == kMostRounds) {
      return make_error(ErrorCode::kDeadline, "settle", "it does not come to rest");
    }
    const absl::StatusOr<Passed> passed = pass_engines();
    const absl::StatusOr<v1::SettleResponse> now = look(what_moves());
    if (!now.ok()) return now.status();
    const bool mapped = passed.ok() && (passed->unmapped == 0 || round >= kMostRoundsUnmapped);
    const bool still = mapped && now->steps() == steps_ + passed->messages;
    steps_ = now->steps();
    waiting = now->waiting_requests();
    if (still) break;
  }
  for (int looks = 0; unanswered() > waiting && looks < kMostLooks; ++looks) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, std::chrono::nanoseconds(kLook.nanoseconds));
  }
  moved_ = false;
  tables_.clear();
  for (const auto& [direction, session, page] : std::exchange(unsealed_holds_, {})) {
    if (absl::Status held = hold(direction, session, page); !held.ok()) return held;
  }
  return absl::OkStatus();
}

void RealWorld::rest() {
  if (!moved_ || !daemon_ || !daemon_->running()) return;
  const absl::Status settled = settle();
  if (trace_ && !settled.ok()) trace_(std::string(settled.message()));
}

std::optional<ledger::Reply> RealWorld::answer_soon(Ticket ticket, Likely) {
  rest();
  if (std::optional<ledger::Reply> reply = answer(ticket)) return reply;
  const auto found = asked_.find(ticket);
  if (found == asked_.end() || !found->second->unparks) return std::nullopt;
  // Its engine waits until the session is ready. If that is not to be expected, nobody waits here.
  using Ready = ledger::SessionReport::Ready;
  const absl::StatusOr<ledger::SessionReport> report = session(*found->second->unparks);
  if (report.ok() && report->ready == Ready::kNo) return std::nullopt;
  return wait_awake(ticket, kCommand);
}

std::optional<ledger::Reply> RealWorld::wait(Ticket ticket, Duration patience) {
  if (patience <= kMostAwake || !daemon_->running()) return wait_awake(ticket, patience);
  rest();
  std::optional<ledger::Reply> reply = answer(ticket);
  while (!reply && patience.nanoseconds > 0) {
    const absl::StatusOr<Duration> passed = pass_time(patience, Until::kNextDeadline);
    if (!passed.ok()) break;
    reply = answer(ticket);
    if (passed->nanoseconds == 0) break;
    patience = {patience.nanoseconds - passed->nanoseconds};
  }
  return reply;
}

absl::StatusOr<Duration> RealWorld::pass_time(Duration limit, Until until) {
  v1::TickRequest request;
  v1::TickResponse response;
  request.set_nanoseconds(limit.nanoseconds);
  request.set_to_next_deadline(until == Until::kNextDeadline);
  if (absl::Status ticked = admin_->call(request, response); !ticked.ok()) return ticked;
  const Duration passed{response.nanoseconds()};
  passed_ = {passed_.nanoseconds + passed.nanoseconds};
  changed();
  if (absl::Status noticed = wait_for_lives(); !noticed.ok()) return noticed;
  rest();
  return passed;
}

Duration RealWorld::until_silence() const {
  Duration next = Duration::from_seconds(1'000'000'000);
  for (const auto& [name, engine] : engines_) {
    if (engine.life != Life::kFrozen) continue;
    const int64_t due = engine.frozen_at.nanoseconds + silent_.nanoseconds;
    if (due > passed_.nanoseconds) next = std::min(next, Duration{due - passed_.nanoseconds});
  }
  return next;
}

// Frozen engines that the daemon has to have noticed by now.
int RealWorld::overdue_silences() const {
  return static_cast<int>(
      std::count_if(engines_.begin(), engines_.end(), [this](const auto& entry) {
        const Engine& engine = entry.second;
        return engine.life == Life::kFrozen &&
               passed_.nanoseconds - engine.frozen_at.nanoseconds >= silent_.nanoseconds;
      }));
}

absl::Status RealWorld::tick(Duration by) {
  rest();
  while (by.nanoseconds > 0) {
    const Duration limit = std::min(by, until_silence());
    absl::StatusOr<Duration> passed = pass_time(limit, Until::kNextDeadline);
    if (passed.ok() && passed->nanoseconds == 0) passed = pass_time(limit, Until::kLimit);
    if (!passed.ok()) return passed.status();
    by = {by.nanoseconds - passed->nanoseconds};
  }
  return absl::OkStatus();
}

}  // namespace memdecay::scenario
