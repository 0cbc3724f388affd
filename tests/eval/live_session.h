// A session of a real memdecayd that holds an episode's real keys and values, and forgets.
//
// Why: what is measured is the product: its policy, its budget, its slots; only the tokens and the
// clock of the episode are given.
// Thread: one; the client library has its own. Scenario, run and identity outlive it.
// Invariants: the daemon hears what an engine would tell it, in that order, and decides after each
// step (lockstep); pages are whole when they are sealed.
// Not here: computing (episode_pass.h, running.cc), questions (prober.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/reference/daemon_store.h"
#include "adapters/reference/loaded_model.h"
#include "adapters/reference/mass_window.h"
#include "tests/bench/processes.h"
#include "tests/eval/plan.h"
#include "tests/eval/scenario.h"

namespace memdecay::eval {

// The heads of a run's channel: all, late, or single ones like L20H3+L21H0.
absl::StatusOr<reference::HeadChoice> channel_heads(const std::string& channel,
                                                    const reference::ModelShape& shape);

class LiveSession {
 public:
  // A daemon of the run's policy, in the folder `programs`, and a lossy session of it whose regions
  // are told. `budget_pages` 0: none yet.
  static absl::StatusOr<std::unique_ptr<LiveSession>> open(
      const std::string& programs, const PlannedRun& run, const Scenario& scenario,
      const reference::LayoutIdentity& identity, uint32_t budget_pages);

  reference::DaemonStore& store() { return *store_; }
  // Seals the whole pages of positions [begin, end) inside the step in work.
  absl::Status seal(size_t begin, size_t end, reference::Holes holes);
  // Ends the step in work. `masses` are reported if the run observes this step.
  absl::Status end_step(uint64_t step, size_t end, const reference::PageMasses& masses);
  absl::Status pin_facts();
  // From now on so many pages; returns when no more are there.
  absl::Status shrink(uint32_t budget_pages);
  // One page comes back beyond the budget, and goes again. data_loss: it did not come.
  absl::Status bring_back(PageIndex page);
  absl::Status give_up_again(PageIndex page);
  // Which pages are there.
  absl::StatusOr<std::vector<char>> resident();

 private:
  // Steps that compute nothing, until no more than so many pages are there.
  absl::Status settle(uint32_t pages);

  LiveSession(const PlannedRun& run, const Scenario& scenario) : run_(run), scenario_(scenario) {}

  const PlannedRun& run_;
  const Scenario& scenario_;
  std::unique_ptr<bench::DaemonProcess> process_;
  std::unique_ptr<reference::DaemonStore> store_;  // goes before its daemon
  reference::MassWindow window_;  // since the last report, for runs that report means
  uint32_t budget_ = 0;
  uint64_t step_ = 0;
  size_t position_ = 0;
};

}  // namespace memdecay::eval
