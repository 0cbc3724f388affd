// What validate and running share: a model, scenarios, a plan's runs, results that grow.
//
// Why: both take every scenario through every run of a plan on a real daemon, and tell it in lines.
// Thread: one; the model's pool helps.
// Invariant: what stands in the results already is not done again.
// Not here: what a run does (validate.cc, running.cc), the lines' file (results_file.h).
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/reference/loaded_model.h"
#include "tests/eval/live_session.h"
#include "tests/eval/plan.h"
#include "tests/eval/results_file.h"
#include "tests/eval/scenario.h"

namespace memdecay::eval {

struct LiveFlags {
  std::string model;
  std::vector<std::string> scenarios;
  std::string plan;
  std::string results;
  std::string programs;
  int threads = 2;
};
void add_live_flags(CLI::App& command, LiveFlags& flags);

class LiveRun {
 public:
  virtual ~LiveRun() = default;
  absl::Status run();

 protected:
  using Json = nlohmann::ordered_json;

  // `mode`: what the lines say that was done.
  LiveRun(LiveFlags flags, std::string mode) : flags_(std::move(flags)), mode_(std::move(mode)) {}

  // Before the first run of a scenario.
  virtual absl::Status begin(const Scenario& scenario) = 0;
  // The result lines of one run.
  virtual absl::StatusOr<std::string> lines(const Scenario& scenario, const PlannedRun& run) = 0;

  reference::Decoder& decoder() { return *model_.decoder; }
  // Of all channels of the plan.
  const std::vector<reference::HeadChoice>& heads() const { return heads_; }
  size_t channel_of(const PlannedRun& run) const;  // index into heads()
  absl::StatusOr<std::unique_ptr<LiveSession>> open(const Scenario& scenario, const PlannedRun& run,
                                                    uint32_t budget);

  Json head_fields(const Scenario& scenario, const PlannedRun& run, uint32_t percent) const;
  static Json fact_fields(const Fact& fact);
  static Json instruction_fields();
  static int all_there(const std::vector<char>& resident, const std::vector<PageIndex>& pages);

 private:
  absl::Status prepare();
  // unsupported: what only a replay can do.
  absl::Status check(const PlannedRun& run) const;
  absl::Status one(const Scenario& scenario, ResultsFile& results, size_t left);

  LiveFlags flags_;
  std::string mode_;
  reference::LoadedModel model_;
  Plan plan_;
  std::vector<std::string> channels_;
  std::vector<reference::HeadChoice> heads_;
};

}  // namespace memdecay::eval
