// See copy_gate.h.
#include "tests/support/copy_gate.h"

#include <algorithm>
#include <utility>

#include "proto/contract/error.h"

namespace memdecay::support {
namespace {

absl::Status refused(std::string asked) {
  return make_error(ErrorCode::kResourceExhausted, std::move(asked), "a test refuses memory",
                    "lift the fault");
}

bool goes_to_host(ledger::CopyKind kind) {
  return kind == ledger::CopyKind::kEvict || kind == ledger::CopyKind::kStore;
}

}  // namespace

CopyGate::CopyGate(reactor::Bytes& inner, Complete complete)
    : inner_(inner), complete_(std::move(complete)) {}

void CopyGate::hold(ContentId content, ledger::CopyKind kind) { orders_.insert({content, kind}); }

std::optional<CopyGate::Held> CopyGate::take_held(ContentId content) {
  const auto at = std::find_if(held_.begin(), held_.end(), [content](const Held& held) {
    return held.copy.content == content;
  });
  if (at == held_.end()) return std::nullopt;
  const Held held = *at;
  held_.erase(at);
  return held;
}

Found CopyGate::finish(ContentId content) {
  if (const std::optional<Held> held = take_held(content)) {
    if (held->state == Held::State::kCancelled) {
      complete_(
          ledger::CopyDone{held->copy.copy, absl::CancelledError("cancelled while held"), {}});
    } else {
      pass_on(held->copy);
    }
    return Found::kHeldCopy;
  }
  const auto first = orders_.lower_bound({content, ledger::CopyKind::kEvict});
  const auto last = orders_.upper_bound({content, ledger::CopyKind::kVerify});
  if (first == last) return Found::kNothing;
  orders_.erase(first, last);
  return Found::kOnlyAnOrder;
}

Found CopyGate::fail(ContentId content, absl::Status status) {
  if (const std::optional<Held> held = take_held(content)) {
    complete_(ledger::CopyDone{held->copy.copy, std::move(status), {}});
    return Found::kHeldCopy;
  }
  return finish(content);
}

void CopyGate::reorder(ContentId first, ContentId second) { behind_[first] = second; }

void CopyGate::lose_completions(double probability, uint64_t seed) {
  lose_probability_ = probability;
  random_ = base::Random(seed);
}

void CopyGate::memory(Memory device, Memory host) {
  device_memory_ = device;
  host_memory_ = host;
}

std::vector<ledger::StartCopy> CopyGate::held() const {
  std::vector<ledger::StartCopy> copies;
  for (const Held& held : held_) copies.push_back(held.copy);
  return copies;
}

absl::Status CopyGate::create_slab(const ledger::CreateSlab& slab) {
  if (device_memory_ == Memory::kRefused) {
    return refused("slab " + std::to_string(slab.slab.value));
  }
  return inner_.create_slab(slab);
}

void CopyGate::destroy_slab(SlabId slab) { inner_.destroy_slab(slab); }

void CopyGate::start_copy(const ledger::StartCopy& copy) {
  const bool ordered = orders_.erase({copy.content, copy.kind}) != 0;
  if (ordered || behind_.contains(copy.content)) {
    held_.push_back({copy});
    return;
  }
  pass_on(copy);
}

void CopyGate::pass_on(const ledger::StartCopy& copy) {
  if (host_memory_ == Memory::kRefused && goes_to_host(copy.kind)) {
    complete_(ledger::CopyDone{copy.copy, refused("a place in the host tier"), {}});
    return;
  }
  running_[copy.copy] = copy.content;
  if (lose_probability_ > 0 && random_.chance(lose_probability_)) losing_.insert(copy.copy);
  inner_.start_copy(copy);
}

void CopyGate::cancel_copy(CopyId copy) {
  for (Held& held : held_) {
    if (held.copy.copy == copy) held.state = Held::State::kCancelled;
  }
  if (!running_.contains(copy)) return;
  inner_.cancel_copy(copy);
  if (auto lost = lost_.extract(copy)) {
    running_.erase(copy);
    inner_.finish_copy(std::move(lost.mapped()));
  }
}

std::optional<ledger::CopyDone> CopyGate::finish_copy(ledger::CopyDone done) {
  const CopyId copy = done.copy;
  const auto running = running_.find(copy);
  // Not passed on: this gate made the completion itself, and nothing below knows of it.
  if (running == running_.end()) return done;
  const ContentId content = running->second;
  if (losing_.erase(copy) != 0) {
    ++lost_count_;
    lost_.emplace(copy, std::move(done));
    return std::nullopt;
  }
  running_.erase(running);
  std::optional<ledger::CopyDone> told = inner_.finish_copy(std::move(done));

  std::vector<ContentId> released;
  for (const auto& [first, second] : behind_) {
    if (second == content) released.push_back(first);
  }
  for (const ContentId first : released) {
    behind_.erase(first);
    if (std::optional<Held> held = take_held(first)) {
      held_.push_front(*held);
      finish(first);
    }
  }
  return told;
}

void CopyGate::drop_host(ContentId content) { inner_.drop_host(content); }

void CopyGate::shadow_row(const ledger::ShadowRow& row) { inner_.shadow_row(row); }

}  // namespace memdecay::support
