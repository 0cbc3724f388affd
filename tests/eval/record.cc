// memdecay-eval record: one full-cache pass of each scenario, as a trace and a sidecar.
//
// Why: every policy is judged on the same observations of the real model, recorded once. The
// sidecar says which page holds which fact, and what the model answers when nothing is missing.
// Thread: one; the model's pool helps.
// Invariants: what is there already is skipped, so an interrupted run goes on where it was; the
// sidecar is written last and stands for the pair.
// Not here: the observations (episode_recorder.h), the questions (prober.h).
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/reference/loaded_model.h"
#include "proto/contract/error.h"
#include "tests/eval/commands.h"
#include "tests/eval/episode_recorder.h"
#include "tests/eval/prober.h"
#include "tests/eval/sidecar.h"
#include "tests/eval/trace_file.h"

namespace memdecay::eval {
namespace {

struct RecordFlags {
  std::string model;
  std::vector<std::string> scenarios;
  std::string out;
  std::string heads;
  int threads = 2;
  uint64_t each_head = 0;  // decoded tokens between two observations of single heads; 0: none
};

class Recording {
 public:
  explicit Recording(RecordFlags flags) : flags_(std::move(flags)) {}
  absl::Status run();

 private:
  absl::Status prepare();
  absl::Status one(const Scenario& scenario);
  std::string path(const Scenario& scenario, const char* ending) const {
    return absl::StrCat(flags_.out, "/", scenario.name(), ending);
  }

  RecordFlags flags_;
  reference::LoadedModel model_;
  std::vector<Channel> channels_;
  EpisodeRecorder::Detail detail_;
  size_t questions_ = 0;
  size_t right_ = 0;
};

absl::Status Recording::prepare() {
  std::error_code error;
  std::filesystem::create_directories(flags_.out, error);
  if (error) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("--out ", flags_.out),
                      error.message(), "name a folder that can be written");
  }
  auto model = reference::LoadedModel::load(flags_.model, flags_.threads,
                                            reference::Fingerprint::kNotNeeded);
  if (!model.ok()) return model.status();
  model_ = *std::move(model);
  const reference::ModelShape& shape = model_.model->shape();
  channels_ = usual_channels(shape);
  if (!flags_.heads.empty()) {
    auto heads = reference::parse_heads(flags_.heads, shape.layers, shape.heads);
    if (!heads.ok()) return heads.status();
    const std::vector<Channel> chosen = head_channels(shape, *std::move(heads));
    channels_.insert(channels_.end(), chosen.begin(), chosen.end());
  }
  if (flags_.each_head > 0) detail_ = {head_channels(shape), flags_.each_head};
  return absl::OkStatus();
}

absl::Status Recording::one(const Scenario& scenario) {
  absl::StatusOr<TraceFile> file = TraceFile::create(path(scenario, ".trace.gz"), trace_header());
  if (!file.ok()) return file.status();
  EpisodeRecorder recorder(scenario, channels_, detail_,
                           [&](const trace::Event& event) { file->write(event); });
  reference::PrivateStore store(model_.decoder->layout());
  recorder.open();
  const absl::Status passed =
      pass_episode(*model_.decoder, scenario, recorder.choices(), store, [&](const SeenStep& seen) {
        recorder.take(seen);
        return absl::OkStatus();
      });
  if (!passed.ok()) return passed;
  recorder.end();
  Prober prober(*model_.decoder, scenario);
  const std::vector<const Question*> questions = all_questions(scenario);
  const absl::StatusOr<std::vector<Answer>> answers = prober.ask(store.table()->read, questions);
  if (!answers.ok()) return answers.status();
  for (size_t i = 0; i < questions.size(); ++i) {
    ++questions_;
    right_ += (*answers)[i].chosen == questions[i]->right ? 1 : 0;
  }
  if (absl::Status status = file->finish(); !status.ok()) return status;
  return write_whole_file(path(scenario, ".facts.json"), sidecar(scenario, *answers));
}

absl::Status Recording::run() {
  if (absl::Status status = prepare(); !status.ok()) return status;
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  size_t made = 0;
  for (size_t i = 0; i < flags_.scenarios.size(); ++i) {
    const auto scenario = load_scenario(flags_.scenarios[i], *model_.tokenizer, *model_.chat);
    if (!scenario.ok()) return scenario.status();
    if (std::filesystem::exists(path(*scenario, ".facts.json"))) continue;
    if (absl::Status status = one(*scenario); !status.ok()) return status;
    ++made;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const size_t left = flags_.scenarios.size() - i - 1;
    std::cerr << absl::StrFormat(
        "%s: %d tokens in %d pages; %d of %d scenarios, %.1f s each, at most %.0f min left;"
        " full cache right in %d of %d questions\n",
        scenario->name(), scenario->tokens.size(), scenario->pages(), i + 1,
        flags_.scenarios.size(), seconds / static_cast<double>(made),
        seconds / static_cast<double>(made) * static_cast<double>(left) / 60, right_, questions_);
  }
  return absl::OkStatus();
}

}  // namespace

void add_record_command(CLI::App& app, absl::Status& outcome) {
  const auto flags = std::make_shared<RecordFlags>();
  CLI::App* command = app.add_subcommand("record", "one full-cache pass of scenarios, as traces");
  command->add_option("--model", flags->model, "Llama-family GGUF file (deploy/fetch_model.sh)")
      ->envname("MEMDECAY_MODEL")
      ->required();
  command->add_option("scenarios", flags->scenarios, "files made by tests/eval/generate.py")
      ->required();
  command->add_option("--out", flags->out, "folder for <scenario>.trace.gz and .facts.json")
      ->required();
  command->add_option("--heads", flags->heads, "also a channel for each of these: LAYER:HEAD,...");
  command->add_option("--each-head", flags->each_head,
                      "also a channel for each head, of every so many decoded tokens");
  command->add_option("--threads", flags->threads)->check(CLI::Range(1, 64));
  command->callback([flags, &outcome] { outcome = Recording(*flags).run(); });
}

}  // namespace memdecay::eval
