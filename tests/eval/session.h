// A recording played to a real memdecayd through the client library: one lossy session that is
// sealed, tagged and observed as the recording says, and then given less and less room.
//
// The pages' bytes do not matter here (nobody computes with them), so they are tiny and empty;
// everything that a policy sees is real. Nothing leaves before the end, so the recording, made with
// all pages there, is what an engine would have reported.
// Thread: one; the client library has its own. Not here: plans and results (replay.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/memdecay.hpp"
#include "tests/bench/processes.h"
#include "tests/eval/plan.h"
#include "tests/eval/recording.h"

namespace memdecay::eval {

// Which pages were there after each of the run's budgets: [budget][page].
using Kept = std::vector<std::vector<char>>;

// A daemon with one configuration and an engine's connection to it.
class ReplayDaemon {
 public:
  // `programs`: the folder that memdecayd lies in.
  static absl::StatusOr<std::unique_ptr<ReplayDaemon>> start(
      const std::string& programs, const std::vector<std::string>& settings);

  // A session that ends with this call. deadline: the daemon did not reach a budget.
  absl::StatusOr<Kept> play(const RecordedSession& recording, const PlannedRun& run);

 private:
  ReplayDaemon() = default;

  std::unique_ptr<bench::DaemonProcess> process_;
  engine::Client client_;  // goes first
  uint32_t sessions_ = 0;
};

// Pages that stay at a budget of so many percent: rounded down, at least 1.
uint32_t budget_pages(uint32_t pages, uint32_t percent);

}  // namespace memdecay::eval
