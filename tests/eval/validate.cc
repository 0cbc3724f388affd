// memdecay-eval validate: what the model still knows after a policy has forgotten.
//
// Why: retention of a fact's page is the figure that is compared; this shows that it is the right
// one: the model is asked for every fact, with the holes that the daemon made.
// The episode is computed once; its pages are written into the slots of one session for each run,
// which seals and observes as an engine does, and then falls to its budget. The episode itself had
// no holes (mode "once"), so the bytes are those that the engine would have written there.
// Thread: one; the model's pool helps. Invariant: a line is written when its probe was asked; what
// stands in the results already is not done again.
// Not here: budgets held all along (running.cc).
#include <chrono>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "adapters/reference/loaded_model.h"
#include "adapters/reference/private_store.h"
#include "tests/eval/commands.h"
#include "tests/eval/episode_pass.h"
#include "tests/eval/live_run.h"
#include "tests/eval/live_session.h"
#include "tests/eval/prober.h"
#include "tests/eval/session.h"

namespace memdecay::eval {
namespace {

using Json = nlohmann::ordered_json;

// One scenario computed: pages, steps and answers with the full cache.
struct Computed {
  struct Step {
    uint64_t step;
    size_t begin;
    size_t end;
    std::vector<reference::PageMasses> masses;  // by channel
  };
  std::unique_ptr<reference::PrivateStore> pages;
  std::vector<Step> steps;
  std::vector<Answer> answers;
};

class Validation final : public LiveRun {
 public:
  explicit Validation(LiveFlags flags) : LiveRun(std::move(flags), "once") {}

 private:
  absl::Status begin(const Scenario& scenario) override;
  absl::StatusOr<std::string> lines(const Scenario& scenario, const PlannedRun& run) override;
  absl::Status replay(LiveSession& live, const Scenario& scenario, size_t channel);
  absl::Status ask(LiveSession& live, const Scenario& scenario, const Json& head,
                   std::string& lines);
  // Each fact whose page is gone, with that page back for its question alone.
  absl::Status ask_restored(LiveSession& live, const Scenario& scenario, const Json& head,
                            std::string& lines);

  Computed computed_;
};

absl::Status Validation::begin(const Scenario& scenario) {
  computed_ = Computed{.pages = std::make_unique<reference::PrivateStore>(decoder().layout())};
  const auto keep = [this](const SeenStep& seen) {
    computed_.steps.push_back(
        {seen.step, seen.begin, seen.end, {seen.masses.begin(), seen.masses.end()}});
    return absl::OkStatus();
  };
  absl::Status status = pass_episode(decoder(), scenario, heads(), *computed_.pages, keep);
  if (!status.ok()) return status;
  Prober prober(decoder(), scenario);
  auto answers = prober.ask(computed_.pages->table()->read, all_questions(scenario));
  if (!answers.ok()) return answers.status();
  computed_.answers = *std::move(answers);
  return status;
}

absl::Status Validation::replay(LiveSession& live, const Scenario& scenario, size_t channel) {
  absl::Status status = live.store().extend(static_cast<uint32_t>(scenario.pages()));
  const absl::StatusOr<reference::PageTable> from = computed_.pages->table();
  for (const Computed::Step& step : computed_.steps) {
    if (!status.ok()) return status;
    status = live.store().begin_step();
    if (!status.ok()) return status;
    const absl::StatusOr<reference::PageTable> to = live.store().table();
    if (!to.ok()) return to.status();
    for (size_t page = step.begin / kPageTokens; page < step.end / kPageTokens; ++page) {
      std::memcpy(to->write[page], from->read[page], decoder().layout().page_bytes());
    }
    status = live.seal(step.begin, step.end, reference::Holes::kUnsaid);
    if (status.ok()) status = live.end_step(step.step, step.end, step.masses[channel]);
  }
  return status;
}

absl::Status Validation::ask(LiveSession& live, const Scenario& scenario, const Json& head,
                             std::string& lines) {
  const absl::StatusOr<std::vector<char>> there = live.resident();
  if (!there.ok()) return there.status();
  Prober prober(decoder(), scenario);
  const std::vector<const Question*> questions = all_questions(scenario);
  const absl::StatusOr<reference::PageTable> table = live.store().table();
  if (!table.ok()) return table.status();
  const auto answers = prober.ask(table->read, questions);
  if (!answers.ok()) return answers.status();
  for (size_t i = 0; i < questions.size(); ++i) {
    const bool is_fact = i < scenario.facts.size();
    const Answer& answer = (*answers)[i];
    const Answer& full = computed_.answers[i];
    const size_t right = questions[i]->right;
    const TokenId value = questions[i]->options[right];
    const std::vector<PageIndex>& pages =
        is_fact ? scenario.facts[i].pages : scenario.instruction_pages;
    Json row = head;
    row.update(is_fact ? fact_fields(scenario.facts[i]) : instruction_fields());
    row["kept"] = all_there(*there, pages);
    for (const bool greedy : {false, true}) {
      Json line = row;
      line["probe"] = greedy ? "greedy" : is_fact ? "choice" : "instruction";
      if (greedy && !is_fact) continue;
      line["right"] = greedy ? (answer.best == value ? 1 : 0) : (answer.chosen == right ? 1 : 0);
      line["full_right"] = greedy ? (full.best == value ? 1 : 0) : (full.chosen == right ? 1 : 0);
      line["loglik_lost"] = full.log_likelihood - answer.log_likelihood;
      lines += line.dump() + "\n";
    }
  }
  return absl::OkStatus();
}

absl::Status Validation::ask_restored(LiveSession& live, const Scenario& scenario, const Json& head,
                                      std::string& lines) {
  Prober prober(decoder(), scenario);
  for (size_t i = 0; i < scenario.facts.size(); ++i) {
    const Fact& fact = scenario.facts[i];
    const absl::StatusOr<std::vector<char>> there = live.resident();
    if (!there.ok()) return there.status();
    if (fact.pages.size() != 1 || all_there(*there, fact.pages) != 0) continue;
    absl::Status status = live.bring_back(fact.pages[0]);
    if (!status.ok()) return status;
    const absl::StatusOr<reference::PageTable> table = live.store().table();
    if (!table.ok()) return table.status();
    const Question* const question = &fact.question;
    const auto answers = prober.ask(table->read, {&question, 1});
    if (!answers.ok()) return answers.status();
    if (status = live.give_up_again(fact.pages[0]); !status.ok()) return status;
    const Answer& full = computed_.answers[i];
    Json line = head;
    line.update(fact_fields(fact));
    line["kept"] = 0;
    line["probe"] = "restored";
    line["restored_pages"] = 1;
    line["right"] = answers->front().chosen == question->right ? 1 : 0;
    line["full_right"] = full.chosen == question->right ? 1 : 0;
    line["loglik_lost"] = full.log_likelihood - answers->front().log_likelihood;
    lines += line.dump() + "\n";
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Validation::lines(const Scenario& scenario, const PlannedRun& run) {
  auto live = open(scenario, run, 0);
  if (!live.ok()) return live.status();
  absl::Status status = replay(**live, scenario, channel_of(run));
  if (status.ok() && run.facts == PlannedRun::Facts::kPinned) status = (*live)->pin_facts();
  std::string out;
  for (const uint32_t percent : run.budgets) {
    const auto pages = static_cast<uint32_t>(scenario.pages());
    if (status.ok() && percent < 100) status = (*live)->shrink(budget_pages(pages, percent));
    if (!status.ok()) return status;
    const Json head = head_fields(scenario, run, percent);
    status = ask(**live, scenario, head, out);
    if (status.ok()) status = ask_restored(**live, scenario, head, out);
  }
  if (!status.ok()) return status;
  return out;
}

}  // namespace

void add_validate_command(CLI::App& app, absl::Status& outcome) {
  const auto flags = std::make_shared<LiveFlags>();
  CLI::App* command = app.add_subcommand("validate", "what the model knows after one forgetting");
  add_live_flags(*command, *flags);
  command->callback([flags, &outcome] { outcome = Validation(*flags).run(); });
}

}  // namespace memdecay::eval
