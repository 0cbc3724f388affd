// Time, faults and reports of the simulated world. See sim_world.h.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/report.h"
#include "daemon/ledger/state.h"
#include "proto/contract/error.h"
#include "tests/scenario/sim_world.h"

namespace memdecay::scenario {
namespace {

using Life = ScriptedEngine::Life;

ledger::CopyKind kind_of(Direction direction) {
  switch (direction) {
    case Direction::kEvict:
      return ledger::CopyKind::kEvict;
    case Direction::kRestore:
      return ledger::CopyKind::kRestore;
    case Direction::kStore:
      return ledger::CopyKind::kStore;
  }
  return ledger::CopyKind::kEvict;
}

}  // namespace

void SimScenarioWorld::rest() {
  const auto keep = [this](const ledger::Reply& reply) {
    askers_.erase(reply.request);
    answers_[reply.request] = reply;
  };
  bool daemon_idle = false;
  std::vector<ScriptedEngine*> ready;
  while (true) {
    ready.clear();
    for (const auto& engine : engines_) {
      if (engine->can_run()) ready.push_back(engine.get());
    }
    if (daemon_idle && ready.empty()) return;
    const uint64_t pick = random_.below(ready.size() + (daemon_idle ? 0 : 1));
    if (pick < ready.size()) {
      ready[pick]->run(keep);
      daemon_idle = false;
    } else {
      daemon_idle = world_->turn() == sim::SimWorld::Turn::kNothing;
    }
  }
}

void SimScenarioWorld::notice_silence() {
  for (const auto& engine : engines_) {
    const std::optional<Instant> since = engine->frozen_since();
    if (!since || engine->told_silent) continue;
    if (world_->clock().now() - *since < config_.limits.silent) continue;
    engine->told_silent = true;
    world_->reactor().complete(ledger::Silence{engine->id(), ledger::Silence::Now::kSilent});
  }
}

bool SimScenarioWorld::advance_to_next(Instant limit) {
  const Instant now = world_->clock().now();
  std::optional<Instant> next = world_->reactor().next_deadline();
  for (const auto& engine : engines_) {
    const std::optional<Instant> since = engine->frozen_since();
    if (!since || engine->told_silent) continue;
    const Instant silent = *since + config_.limits.silent;
    if (!next || silent < *next) next = silent;
  }
  if (!next || *next > limit) return false;
  world_->advance(std::max(*next - now, Duration::from_milliseconds(1)));
  notice_silence();
  rest();
  return true;
}

absl::Status SimScenarioWorld::tick(Duration by) {
  rest();
  const Instant target = world_->clock().now() + by;
  while (world_->clock().now() < target && advance_to_next(target)) {
  }
  if (world_->clock().now() < target) world_->advance(target - world_->clock().now());
  notice_silence();
  rest();
  return absl::OkStatus();
}

absl::Status SimScenarioWorld::settle() {
  rest();
  return absl::OkStatus();
}

absl::StatusOr<ledger::PageReport> SimScenarioWorld::page(SessionId session, PageIndex page) {
  const auto all = ledger::report_pages(world_->ledger(), session);
  if (!all.ok()) return all.status();
  if (page >= all->size()) {
    return make_error(ErrorCode::kUnknownPage, absl::StrCat("page ", page),
                      absl::StrCat("the session has ", all->size()), "");
  }
  return (*all)[page];
}

absl::StatusOr<ContentId> SimScenarioWorld::content(SessionId session, PageIndex index) {
  const absl::StatusOr<ledger::PageReport> report = page(session, index);
  if (!report.ok()) return report.status();
  if (!report->content) {
    return make_error(ErrorCode::kNotSealed, absl::StrCat("page ", index), "it is not sealed", "");
  }
  return report->content;
}

// Holds for pages that had no content yet are placed as soon as they have one.
void SimScenarioWorld::place_holds() {
  for (auto hold = holds_.begin(); hold != holds_.end();) {
    const absl::StatusOr<ContentId> held = content(hold->session, hold->page);
    if (held.ok()) {
      world_->gate().hold(*held, kind_of(hold->direction));
      held_[{hold->session, hold->page}] = *held;
    }
    hold = held.ok() ? holds_.erase(hold) : hold + 1;
  }
}

absl::Status SimScenarioWorld::hold(Direction direction, SessionId session, PageIndex page) {
  holds_.push_back({direction, session, page});
  place_holds();
  return absl::OkStatus();
}

absl::Status SimScenarioWorld::end_copy(SessionId session, PageIndex page, Ending ending) {
  absl::StatusOr<ContentId> held = content(session, page);
  // A page that was cut off or closed meanwhile: its copy is still there.
  const auto before = held_.find({session, page});
  if (before != held_.end()) held = before->second;
  if (!held.ok()) return held.status();
  if (ending == Ending::kFinish) {
    world_->gate().finish(*held);
  } else {
    world_->gate().fail(*held,
                        make_error(ErrorCode::kUnavailable, "a copy", "the script failed it"));
  }
  rest();
  return absl::OkStatus();
}

absl::Status SimScenarioWorld::reorder(SessionId session, PageIndex first, SessionId other_session,
                                       PageIndex second) {
  const absl::StatusOr<ContentId> a = content(session, first);
  const absl::StatusOr<ContentId> b = content(other_session, second);
  if (!a.ok()) return a.status();
  if (!b.ok()) return b.status();
  world_->gate().reorder(*a, *b);
  world_->gate().finish(*b);
  world_->gate().finish(*a);
  return absl::OkStatus();
}

absl::Status SimScenarioWorld::lose_completions(double probability) {
  world_->gate().lose_completions(probability, random_.next());
  return absl::OkStatus();
}

absl::Status SimScenarioWorld::hash_bits(int bits) {
  world_->inspect([bits](ledger::Ledger& ledger) { ledger.truncate_keys_for_test(bits); });
  return absl::OkStatus();
}

absl::Status SimScenarioWorld::damage(Damage what, SessionId session, PageIndex page) {
  const absl::StatusOr<ContentId> hit = content(session, page);
  if (!hit.ok()) return hit.status();
  bool done = false;
  switch (what) {
    case Damage::kFlip:
      done = world_->bytes().flip_host(*hit, random_.next());
      break;
    case Damage::kZero:
      done = world_->bytes().zero_host(*hit);
      break;
    case Damage::kUnlink:
      done = world_->bytes().unlink_host(*hit);
      break;
  }
  if (done) return absl::OkStatus();
  return make_error(ErrorCode::kNotFound, absl::StrCat("page ", page), "no lower replica", "");
}

absl::Status SimScenarioWorld::raw(const std::string&, const Settings&) {
  return make_error(ErrorCode::kUnsupported, "raw bytes", "simulation has no sockets");
}

absl::StatusOr<std::string> SimScenarioWorld::engine_state(const std::string& name) {
  const ScriptedEngine* engine = find(name);
  if (engine == nullptr) return make_error(ErrorCode::kNotFound, name, "never attached");
  const auto& engines = world_->ledger().state().engines;
  const auto found = engines.find(engine->id());
  if (found == engines.end()) return std::string("dead");
  return std::string(engine_state_name(found->second.state));
}

absl::StatusOr<ledger::SessionReport> SimScenarioWorld::session(SessionId session) {
  return ledger::report_session(world_->ledger(), session);
}

absl::StatusOr<std::vector<ledger::PageReport>> SimScenarioWorld::pages(SessionId session) {
  return ledger::report_pages(world_->ledger(), session);
}

absl::StatusOr<std::vector<ledger::DecisionReport>> SimScenarioWorld::decisions(
    SessionId session, std::optional<PageIndex> page) {
  return ledger::report_decisions(world_->ledger(), session, page);
}

absl::StatusOr<std::vector<PageIndex>> SimScenarioWorld::victims(SessionId session,
                                                                 uint32_t count) {
  std::vector<PageIndex> pages;
  for (const auto& [page, score] : ledger::report_victims(world_->ledger(), session, count)) {
    pages.push_back(page);
  }
  return pages;
}

absl::StatusOr<std::vector<ledger::Sample>> SimScenarioWorld::samples() {
  return ledger::report_metrics(world_->ledger());
}

absl::StatusOr<ledger::StatusReport> SimScenarioWorld::status() {
  return ledger::report_status(world_->ledger());
}

absl::StatusOr<std::vector<ledger::SessionReport>> SimScenarioWorld::sessions() {
  return ledger::report_sessions(world_->ledger(), TenantId{});
}

absl::StatusOr<std::string> SimScenarioWorld::replica(SessionId session, PageIndex index) {
  const absl::StatusOr<ledger::PageReport> report = page(session, index);
  if (!report.ok()) return report.status();
  std::optional<sim::PageBytes> bytes;
  const auto& contents = world_->ledger().state().contents;
  const auto found = contents.find(report->content);
  if (found != contents.end() && found->second->slot && found->second->slot_valid) {
    bytes = world_->bytes().slot_bytes(*found->second->slot);
  }
  if (!bytes && report->content) bytes = world_->bytes().host_bytes(report->content);
  if (!bytes) {
    return make_error(ErrorCode::kNotFound, absl::StrCat("page ", index), "no replica", "");
  }
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

std::vector<std::string> SimScenarioWorld::audit() { return world_->ledger().audit(); }

absl::StatusOr<World::Footprint> SimScenarioWorld::footprint() {
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  statm >> total >> resident;
  Footprint footprint{.rss_bytes = resident * sysconf(_SC_PAGESIZE)};
  for (const ledger::Sample& sample : ledger::report_metrics(world_->ledger())) {
    if (sample.name == "tier_bytes") footprint.rss_bytes -= static_cast<int64_t>(sample.value);
  }
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    ++footprint.descriptors;
  }
  return footprint;
}

std::optional<uint64_t> SimScenarioWorld::event_hash() const {
  if (!world_) return std::nullopt;
  return world_->trace_hash();
}

}  // namespace memdecay::scenario
