// See sim_world.h.
#include "tests/sim/sim_world.h"

#include <algorithm>
#include <string_view>

#include "daemon/base/limits.h"
#include "daemon/reactor/trace.h"
#include "proto/contract/check.h"
#include "proto/contract/timeline_page.h"

namespace memdecay::sim {

Fence SimFences::make(EngineId engine) { return Fence{0, next_word_[engine]++, 1}; }

void SimFences::signal(EngineId engine, const Fence& fence) {
  uint64_t& word = words_[{engine, fence.member, fence.word}];
  if (!fence_reached(word, fence.value)) word = fence.value;
  const auto passed = std::stable_partition(
      watched_.begin(), watched_.end(),
      [this](const auto& watched) { return !reached(watched.first, watched.second); });
  const std::vector<std::pair<EngineId, Fence>> report(passed, watched_.end());
  watched_.erase(passed, watched_.end());
  for (const auto& [who, which] : report) complete_(ledger::FencePassed{who, which});
}

bool SimFences::reached(EngineId engine, const Fence& fence) const {
  if (fence.value == 0) return true;
  const auto word = words_.find({engine, fence.member, fence.word});
  return word != words_.end() && fence_reached(word->second, fence.value);
}

void SimFences::engine_gone(EngineId engine) {
  std::erase_if(watched_, [engine](const auto& watched) { return watched.first == engine; });
}

std::vector<std::pair<EngineId, Fence>> SimFences::open() const { return watched_; }

void SimFences::watch(EngineId engine, const Fence& fence) {
  if (reached(engine, fence)) {
    complete_(ledger::FencePassed{engine, fence});
  } else {
    watched_.emplace_back(engine, fence);
  }
}

SimWorld::SimWorld(SimOptions options, reactor::Edge& edge)
    : options_(std::move(options)),
      random_(options_.seed),
      fences_([this](ledger::Event event) { reactor_->complete(std::move(event)); }) {
  const auto complete = [this](ledger::Event event) { reactor_->complete(std::move(event)); };
  bytes_ = std::make_unique<SimBytes>(random_.next(), complete);
  if (options_.wrap_bytes) wrapped_ = options_.wrap_bytes(*bytes_);
  reactor::Bytes& inner = wrapped_ ? *wrapped_ : *bytes_;
  gate_ = std::make_unique<support::CopyGate>(inner, complete);
  reactor_ = std::make_unique<reactor::Reactor>(options_.ledger, clock_, edge, *gate_, fences_);
  reactor_->on_step([this](const reactor::StepReport& step) { record(step); });
}

SimWorld::~SimWorld() = default;

void SimWorld::inspect(std::function<void(ledger::Ledger&)> look) {
  reactor_->inspect(std::move(look));
  reactor_->run_ready();
}

void SimWorld::record(const reactor::StepReport& step) {
  ++steps_;
  const auto add = [this](const std::string& line) {
    for (const char c : line) {
      trace_hash_ = (trace_hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    trace_hash_ = (trace_hash_ ^ '\n') * 0x100000001b3;
    if (sink_) sink_(line);
  };
  add(std::to_string(step.at.nanoseconds / 1'000'000) + "ms " + reactor::to_text(step.event));
  for (const ledger::Effect& effect : step.effects) add("  " + reactor::to_text(effect));
  if (look_) look_(step);
}

SimWorld::Turn SimWorld::turn() {
  if (reactor_->run_ready() != 0) return Turn::kSomething;
  const size_t copies = bytes_->in_flight().size();
  if (copies == 0) return Turn::kNothing;
  const bool random = options_.copy_order == SimOptions::CopyOrder::kRandom;
  bytes_->complete_copy(random ? random_.below(copies) : 0);
  return Turn::kSomething;
}

SimWorld::Rest SimWorld::run_until_idle() {
  const uint64_t before = steps_;
  while (turn() == Turn::kSomething) {
    if (steps_ - before > kMostSteps) return Rest::kRestless;
  }
  return Rest::kIdle;
}

SimWorld::Rest SimWorld::advance(Duration by) {
  const Instant target = clock_.now() + by;
  Rest rest = run_until_idle();
  while (rest == Rest::kIdle) {
    const std::optional<Instant> due = reactor_->next_deadline();
    if (!due || *due > target) break;
    // A deadline that its Tick left due is looked at again a little later, as in the daemon.
    const Instant now = clock_.now();
    const Instant next = *due > now ? *due : now + base::limits::kTickAgain;
    if (next > target) break;
    clock_.advance(next - now);
    rest = run_until_idle();
  }
  clock_.advance(target - clock_.now());
  return rest == Rest::kIdle ? run_until_idle() : rest;
}

}  // namespace memdecay::sim
