// Loading, the loop over scenarios and runs, and the fields of a line; see live_run.h.
#include "tests/eval/live_run.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/contract/error.h"

namespace memdecay::eval {

void add_live_flags(CLI::App& command, LiveFlags& flags) {
  command.add_option("--model", flags.model, "Llama-family GGUF file (deploy/fetch_model.sh)")
      ->envname("MEMDECAY_MODEL")
      ->required();
  command.add_option("scenarios", flags.scenarios, "files made by tests/eval/generate.py")
      ->required();
  command.add_option("--plan", flags.plan, "what is run (tests/eval/plans)")->required();
  command.add_option("--results", flags.results, "file of lines, grows at its end")->required();
  command.add_option("--programs", flags.programs, "folder of memdecayd")->required();
  command.add_option("--threads", flags.threads)->check(CLI::Range(1, 64));
}

absl::Status LiveRun::prepare() {
  absl::StatusOr<Plan> plan = read_plan(flags_.plan);
  if (!plan.ok()) return plan.status();
  plan_ = *std::move(plan);
  for (const PlannedRun& run : plan_.runs) {
    if (absl::Status status = check(run); !status.ok()) return status;
  }
  auto model =
      reference::LoadedModel::load(flags_.model, flags_.threads, reference::Fingerprint::kNeeded);
  if (!model.ok()) return model.status();
  model_ = *std::move(model);
  channels_ = plan_.heads();
  for (const std::string& channel : channels_) {
    absl::StatusOr<reference::HeadChoice> heads = channel_heads(channel, model_.model->shape());
    if (!heads.ok()) return heads.status();
    heads_.push_back(*std::move(heads));
  }
  return absl::OkStatus();
}

absl::Status LiveRun::run() {
  if (absl::Status status = prepare(); !status.ok()) return status;
  std::optional<ResultsFile> results;
  for (size_t i = 0; i < flags_.scenarios.size(); ++i) {
    const auto scenario = load_scenario(flags_.scenarios[i], *model_.tokenizer, *model_.chat);
    if (!scenario.ok()) return scenario.status();
    if (!results) {
      absl::StatusOr<ResultsFile> file = ResultsFile::open(flags_.results, scenario->set);
      if (!file.ok()) return file.status();
      results = *std::move(file);
    }
    if (scenario->set != results->set()) {
      return make_error(
          ErrorCode::kInvalidArgument, flags_.scenarios[i],
          absl::StrCat("is of the set ", scenario->set, ", others are of ", results->set()),
          "give the scenarios of one set");
    }
    absl::Status status = one(*scenario, *results, flags_.scenarios.size() - i - 1);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status LiveRun::one(const Scenario& scenario, ResultsFile& results, size_t left) {
  const auto started = std::chrono::steady_clock::now();
  size_t done = 0;
  for (const PlannedRun& run : plan_.runs) {
    if (results.holds(run, scenario.seed)) continue;
    absl::Status status = done == 0 ? begin(scenario) : absl::OkStatus();
    if (!status.ok()) return status;
    const absl::StatusOr<std::string> text = lines(scenario, run);
    if (!text.ok()) {
      std::cerr << scenario.name() << ", " << run.key() << "\n";
      return text.status();
    }
    if (status = results.add(*text); !status.ok()) return status;
    ++done;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  if (done > 0) {
    std::cerr << absl::StrFormat("%s: %d runs in %.1f s; %d scenarios left, about %.0f min\n",
                                 scenario.name(), done, seconds.count(), left,
                                 seconds.count() * static_cast<double>(left) / 60);
  }
  return absl::OkStatus();
}

absl::Status LiveRun::check(const PlannedRun& run) const {
  const std::string asked = absl::StrCat("plan ", flags_.plan, ", run ", run.key());
  const std::string todo = "leave this run to memdecay-eval replay";
  if (run.facts == PlannedRun::Facts::kPinned && mode_ == "running") {
    return make_error(ErrorCode::kUnsupported, asked, "a fact has no page to pin at the start",
                      todo);
  }
  return absl::OkStatus();
}

size_t LiveRun::channel_of(const PlannedRun& run) const {
  return static_cast<size_t>(std::find(channels_.begin(), channels_.end(), run.heads) -
                             channels_.begin());
}

absl::StatusOr<std::unique_ptr<LiveSession>> LiveRun::open(const Scenario& scenario,
                                                           const PlannedRun& run, uint32_t budget) {
  return LiveSession::open(flags_.programs, run, scenario, *model_.identity, budget);
}

LiveRun::Json LiveRun::head_fields(const Scenario& scenario, const PlannedRun& run,
                                   uint32_t percent) const {
  return {
      {"set", scenario.set},      {"seed", scenario.seed},         {"mode", mode_},
      {"policy", run.as},         {"variant", run.variant},        {"channel", run.channel},
      {"sampling", run.sampling}, {"queries", run.queries_name()}, {"prefill", run.prefill_name()},
      {"budget", percent}};
}

LiveRun::Json LiveRun::fact_fields(const Fact& fact) {
  return {{"fact", fact.id},
          {"region", fact.region},
          {"planting", fact.planting},
          {"used", fact.use != "none"},
          {"use", fact.use}};
}

LiveRun::Json LiveRun::instruction_fields() {
  return {{"fact", "instruction"},
          {"region", "user"},
          {"planting", "opening"},
          {"used", false},
          {"use", "none"}};
}

int LiveRun::all_there(const std::vector<char>& resident, const std::vector<PageIndex>& pages) {
  return std::all_of(pages.begin(), pages.end(),
                     [&](PageIndex page) { return resident[page] != 0; })
             ? 1
             : 0;
}

}  // namespace memdecay::eval
