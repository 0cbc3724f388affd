// See lab_rest.h.
#include "tests/lab/lab_rest.h"

#include <algorithm>
#include <optional>
#include <set>

#include "daemon/base/mailbox.h"
#include "daemon/ledger/state.h"
#include "proto/contract/error.h"

namespace memdecay::lab {
namespace {

constexpr Duration kLook = Duration::from_milliseconds(1);
constexpr int kMostLooks = 20'000;
// So long an answer that is owed is waited for.
constexpr int kMostLooksOwing = 3'000;

struct Look {
  uint64_t steps = 0;
  bool moving = false;  // copies, queues, fences that have passed unseen
  bool owing = false;
};

// The engine has been asked or told something about the page and has to answer.
bool waits_for_engine(const ledger::View& view) {
  return view.state == PageState::kAsked || (view.state == PageState::kRestoring && view.announced);
}

bool owes(const ledger::State& state, const v1::SettleRequest& request) {
  const std::set<uint64_t> engines(request.engines().begin(), request.engines().end());
  for (const auto& [id, session] : state.sessions) {
    const bool counts =
        session->engine && (engines.empty() || engines.contains(session->engine.value));
    if (counts && std::any_of(session->pages.begin(), session->pages.end(), waits_for_engine)) {
      return true;
    }
  }
  return false;
}

bool has_unseen_fence(const ledger::State& state, const v1::SettleRequest& request) {
  return std::any_of(request.fences().begin(), request.fences().end(), [&](const auto& signalled) {
    return std::any_of(state.fences.begin(), state.fences.end(), [&](const auto& entry) {
      const auto& [engine, fence] = entry.first;
      return engine.value == signalled.engine() && fence.member == signalled.member() &&
             fence.word == signalled.word() && fence.value <= signalled.value();
    });
  });
}

Look look_at(const Bench& bench, const v1::SettleRequest& request) {
  Look look;
  base::Wake wake;
  bench.edge.reactor().inspect([&](ledger::Ledger& ledger) {
    look.moving = bench.gate.running() > 0 || has_unseen_fence(ledger.state(), request);
    look.owing = owes(ledger.state(), request);
    wake.ring();
  });
  wake.wait();
  const reactor::Reactor::Depths depths = bench.edge.reactor().depths();
  look.moving = look.moving || depths.completions > 0 || depths.stream > 0 || depths.requests > 0 ||
                bench.edge.engines().messages_waiting() > 0;
  look.steps = bench.metrics.snapshot().decision_seconds.total();
  return look;
}

}  // namespace

absl::Status wait_for_rest(const Bench& bench, const v1::SettleRequest& request,
                           v1::SettleResponse& response) {
  base::Wake nobody;
  std::optional<uint64_t> steps_before;
  for (int looks = 0; looks < kMostLooks; ++looks) {
    const Look look = look_at(bench, request);
    const bool owing = look.owing && looks < kMostLooksOwing;
    const bool still = !look.moving && !owing && steps_before == look.steps;
    if (still || request.look_only()) {
      response.set_steps(look.steps);
      response.set_waiting_requests(bench.edge.waiting());
      return absl::OkStatus();
    }
    if (look.moving || owing) nobody.wait(kLook);
    steps_before = look.steps;
  }
  return make_error(ErrorCode::kDeadline, "settle", "it does not come to rest", "");
}

}  // namespace memdecay::lab
