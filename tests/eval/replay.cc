// See replay.h.
#include "tests/eval/replay.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/contract/error.h"
#include "tests/eval/commands.h"
#include "tests/eval/plan.h"
#include "tests/eval/recording.h"
#include "tests/eval/results_file.h"
#include "tests/eval/session.h"

namespace memdecay::eval {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr size_t kMostDaemons = 256;
constexpr auto kSayEvery = std::chrono::seconds(5);

absl::Status refuse(const std::string& asked, const std::string& there, const std::string& todo) {
  return make_error(ErrorCode::kInvalidArgument, asked, there, todo);
}

std::string lines_of(const ReplayRequest& request, const RecordedSession& recording,
                     const PlannedRun& run, const Kept& kept) {
  std::string lines;
  for (size_t i = 0; i < run.budgets.size(); ++i) {
    const std::vector<char>& pages = kept[i];
    const auto resident = std::count(pages.begin(), pages.end(), 1);
    for (const FactPlace& fact : recording.facts) {
      const bool all = std::all_of(fact.pages.begin(), fact.pages.end(),
                                   [&pages](PageIndex page) { return pages[page] != 0; });
      const Json row = {{"set", request.set},
                        {"seed", recording.seed},
                        {"mode", "once"},
                        {"policy", run.as},
                        {"variant", run.variant},
                        {"channel", run.channel},
                        {"sampling", run.sampling},
                        {"queries", run.queries_name()},
                        {"prefill", run.prefill_name()},
                        {"budget", run.budgets[i]},
                        {"fact", fact.id},
                        {"region", fact.region},
                        {"planting", fact.planting},
                        {"used", fact.used == FactPlace::Used::kYes},
                        {"kept", all ? 1 : 0},
                        {"pages", recording.pages},
                        {"resident", resident}};
      absl::StrAppend(&lines, row.dump(), "\n");
    }
  }
  return lines;
}

// The daemons of a plan, started when they are needed.
class Daemons {
 public:
  explicit Daemons(std::string programs) : programs_(std::move(programs)) {}

  absl::StatusOr<ReplayDaemon*> of(const PlannedRun& run, uint64_t seed) {
    const std::vector<std::string> settings = run.daemon_settings(seed);
    std::unique_ptr<ReplayDaemon>& daemon =
        run.differs_by_seed() ? latest_ : daemons_[absl::StrJoin(settings, " ")];
    if (run.differs_by_seed()) daemon.reset();
    if (daemon != nullptr) return daemon.get();
    if (daemons_.size() > kMostDaemons) {
      return refuse("the plan", absl::StrCat("needs more than ", kMostDaemons, " daemons"),
                    "split it");
    }
    auto started = ReplayDaemon::start(programs_, settings);
    if (!started.ok()) return started.status();
    daemon = *std::move(started);
    return daemon.get();
  }

 private:
  std::string programs_;
  std::map<std::string, std::unique_ptr<ReplayDaemon>> daemons_;  // by settings
  std::unique_ptr<ReplayDaemon> latest_;                          // of a run that differs by seed
};

class Progress {
 public:
  explicit Progress(size_t all) : all_(all), began_(Clock::now()), said_(began_) {}

  void skip() { --all_; }
  void done() {
    ++done_;
    const auto now = Clock::now();
    if (now - said_ < kSayEvery && done_ != all_) return;
    said_ = now;
    const double took = std::chrono::duration<double>(now - began_).count();
    const double left = took / static_cast<double>(done_) * static_cast<double>(all_ - done_);
    std::cerr << absl::StrFormat("replay: %d of %d sessions, %.2f s each, %.0f s left\n", done_,
                                 all_, took / static_cast<double>(done_), left);
  }

 private:
  size_t all_;
  size_t done_ = 0;
  Clock::time_point began_;
  Clock::time_point said_;
};

absl::StatusOr<Kept> play(ReplayDaemon& daemon, const ReplayRequest& request,
                          const RecordedSession& recording, const PlannedRun& run) {
  if (request.budgets == ReplayRequest::Budgets::kFalling) return daemon.play(recording, run);
  Kept kept;
  for (const uint32_t budget : run.budgets) {
    PlannedRun one = run;
    one.budgets = {budget};
    absl::StatusOr<Kept> pages = daemon.play(recording, one);
    if (!pages.ok()) return pages.status();
    kept.push_back(std::move(pages->front()));
  }
  return kept;
}

absl::Status replay_recording(const ReplayRequest& request, const Plan& plan,
                              const RecordingFile& file, Daemons& daemons, ResultsFile& results,
                              Progress& progress) {
  std::optional<RecordedSession> recording;
  for (const PlannedRun& run : plan.runs) {
    if (results.holds(run, file.seed)) {
      progress.skip();
      continue;
    }
    if (!recording) {
      absl::StatusOr<RecordedSession> read = read_recording(file.path, plan.heads());
      if (!read.ok()) return read.status();
      recording = *std::move(read);
    }
    const absl::StatusOr<ReplayDaemon*> daemon = daemons.of(run, file.seed);
    if (!daemon.ok()) return daemon.status();
    const absl::StatusOr<Kept> kept = play(**daemon, request, *recording, run);
    if (!kept.ok()) {
      std::cerr << "replay: " << file.path << ", " << run.key() << "\n";
      return kept.status();
    }
    absl::Status status = results.add(lines_of(request, *recording, run, *kept));
    if (!status.ok()) return status;
    progress.done();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status replay(const ReplayRequest& request) {
  const absl::StatusOr<Plan> plan = read_plan(request.plan);
  if (!plan.ok()) return plan.status();
  auto files = list_recordings(request.recordings, request.set);
  if (!files.ok()) return files.status();
  if (request.limit > 0 && files->size() > request.limit) files->resize(request.limit);
  absl::StatusOr<ResultsFile> results = ResultsFile::open(request.results, request.set);
  if (!results.ok()) return results.status();
  Daemons daemons(request.programs);
  Progress progress(files->size() * plan->runs.size());
  for (const RecordingFile& file : *files) {
    absl::Status status = replay_recording(request, *plan, file, daemons, *results, progress);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void add_replay_command(CLI::App& app, absl::Status& outcome) {
  CLI::App* command = app.add_subcommand("replay", "recordings through policies of a memdecayd");
  // Lives as long as the command line does.
  auto request = std::make_shared<ReplayRequest>();
  command->add_option("--recordings", request->recordings, "folder of SET-SEED.trace.gz")
      ->required();
  command->add_option("--set", request->set, "which recordings: tune, held, …")->required();
  command->add_option("--plan", request->plan, "tests/eval/plans/*.json")->required();
  command->add_option("--results", request->results, "lines are added to this file")->required();
  command->add_option("--limit", request->limit, "recordings at most; 0: all");
  command->add_flag_callback(
      "--apart", [request] { request->budgets = ReplayRequest::Budgets::kApart; },
      "each budget in a session of its own");
  command->callback([&outcome, request] {
    request->programs = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
    outcome = replay(*request);
  });
}

}  // namespace memdecay::eval
