// memdecay-eval running: a budget held all along, on a real daemon with the real model.
//
// Why: in a long session pages leave while it computes, so what is computed later sees holes and a
// policy decides again and again on what it has left.
// A page's tokens are computed in one batch and told one by one: the daemon takes pages only when a
// new one is asked for, so nothing can leave in between (checked), and the bits are those of single
// steps (adapters/reference/decoder.h).
// Thread: one; the model's pool helps.
// Not here: one forgetting at the end, questions (validate.cc).
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/eval/commands.h"
#include "tests/eval/episode_pass.h"
#include "tests/eval/live_run.h"
#include "tests/eval/session.h"

namespace memdecay::eval {
namespace {

using reference::Holes;
using reference::PageMasses;
using reference::PageTable;

// One session on its way through an episode.
class Runner {
 public:
  Runner(reference::Decoder& decoder, const Scenario& scenario, LiveSession& live,
         reference::HeadChoice heads, uint32_t budget)
      : decoder_(decoder),
        scenario_(scenario),
        live_(live),
        heads_(std::move(heads)),
        // A prefill step must leave room for what the session should remember (as in the engine).
        chunk_(std::min<size_t>(kChunkTokens, std::max(1u, budget / 4) * kPageTokens)),
        there_when_used_(scenario.facts.size()) {}

  absl::Status run() {
    absl::Status status;
    const size_t prefilled = scenario_.prefill_tokens;
    for (size_t at = 0; status.ok() && at < prefilled; at += chunk_) {
      const size_t end = std::min(at + chunk_, prefilled);
      status = compute(at, end, end - at);
    }
    for (size_t at = prefilled; status.ok() && at < scenario_.tokens.size(); at += kPageTokens) {
      status = compute(at, at + kPageTokens, 1);
    }
    return status;
  }

  // Whether a fact's pages were there when the decoded part began to use it; no value: it did not.
  std::optional<int> there_when_used(size_t fact) const { return there_when_used_[fact]; }
  double resident_mean() const { return resident_sum_ / static_cast<double>(steps_); }
  uint32_t resident_peak() const { return resident_peak_; }

 private:
  // Whole pages; `group`: tokens of one step.
  absl::Status compute(size_t begin, size_t end, size_t group) {
    absl::Status status = live_.store().extend(static_cast<uint32_t>((end - begin) / kPageTokens));
    if (status.ok()) status = live_.store().begin_step();
    if (!status.ok()) return status;
    const absl::StatusOr<PageTable> table = live_.store().table();
    if (!table.ok()) return table.status();
    if (std::count(table->read.begin(), table->read.end(), nullptr) > 0) holes_ = Holes::kSome;
    note_uses(begin, end, *table);
    const reference::MassRequest request{
        .sealed_pages = begin / kPageTokens, .choices = {heads_}, .group_queries = group};
    const auto out =
        decoder_.forward({.tokens = std::span(scenario_.tokens).subspan(begin, end - begin),
                          .first_position = begin,
                          .pages = *table,
                          .logits = reference::LogitRows::kNone,
                          .masses = &request});
    if (!out.ok()) return out.status();
    const absl::StatusOr<reference::PageCounts> before = live_.store().counts();
    if (!before.ok()) return before.status();
    for (size_t at = begin; at < end; at += group) {
      status = tell(at, at + group, out->masses[(at - begin) / group]);
      if (!status.ok()) return status;
      if (at + group == end) break;
      if (status = nothing_left(before->resident); status.ok()) status = live_.store().begin_step();
      if (!status.ok()) return status;
    }
    return status;
  }

  void note_uses(size_t begin, size_t end, const PageTable& table) {
    for (size_t i = 0; i < scenario_.facts.size(); ++i) {
      const Fact& fact = scenario_.facts[i];
      if (!fact.used_at_step) continue;
      const size_t position = scenario_.prefill_tokens + *fact.used_at_step - 1;
      if (position < begin || position >= end) continue;
      const auto there = [&](PageIndex page) { return table.read[page] != nullptr; };
      there_when_used_[i] = std::all_of(fact.pages.begin(), fact.pages.end(), there) ? 1 : 0;
    }
  }

  absl::Status tell(size_t begin, size_t end, const PageMasses& masses) {
    const bool decoding = begin >= scenario_.prefill_tokens;
    absl::Status status = live_.seal(begin, end, holes_);
    if (!status.ok()) return status;
    status = live_.end_step(decoding ? end - scenario_.prefill_tokens : 0, end, masses);
    const absl::StatusOr<reference::PageCounts> counts = live_.store().counts();
    if (!counts.ok()) return counts.status();
    ++steps_;
    resident_sum_ += counts->resident;
    resident_peak_ = std::max(resident_peak_, counts->resident);
    return status;
  }

  absl::Status nothing_left(uint32_t before) {
    const absl::StatusOr<reference::PageCounts> counts = live_.store().counts();
    if (!counts.ok()) return counts.status();
    if (counts->resident == before) return absl::OkStatus();
    return make_error(
        ErrorCode::kInternal, "tokens of one page as one batch",
        absl::StrCat("pages left in between: ", before, " before, ", counts->resident, " after"),
        "run it without watermarks");
  }

  reference::Decoder& decoder_;
  const Scenario& scenario_;
  LiveSession& live_;
  reference::HeadChoice heads_;
  size_t chunk_;
  Holes holes_ = Holes::kUnsaid;
  std::vector<std::optional<int>> there_when_used_;
  size_t steps_ = 0;
  double resident_sum_ = 0.0;
  uint32_t resident_peak_ = 0;
};

class Running final : public LiveRun {
 public:
  explicit Running(LiveFlags flags) : LiveRun(std::move(flags), "running") {}

 private:
  absl::Status begin(const Scenario&) override { return absl::OkStatus(); }
  absl::StatusOr<std::string> lines(const Scenario& scenario, const PlannedRun& run) override;
};

absl::StatusOr<std::string> Running::lines(const Scenario& scenario, const PlannedRun& run) {
  std::string out;
  for (const uint32_t percent : run.budgets) {
    const auto pages = static_cast<uint32_t>(scenario.pages());
    const uint32_t budget = budget_pages(pages, percent);
    auto live = open(scenario, run, percent < 100 ? budget : 0);
    if (!live.ok()) return live.status();
    Runner runner(decoder(), scenario, **live, heads()[channel_of(run)], budget);
    if (absl::Status status = runner.run(); !status.ok()) return status;
    const absl::StatusOr<std::vector<char>> there = (*live)->resident();
    if (!there.ok()) return there.status();
    for (size_t i = 0; i < scenario.facts.size(); ++i) {
      const Fact& fact = scenario.facts[i];
      Json line = head_fields(scenario, run, percent);
      line.update(fact_fields(fact));
      line["kept"] = all_there(*there, fact.pages);
      line["pages"] = pages;
      if (const auto used = runner.there_when_used(i)) line["there_when_used"] = *used;
      line["resident"] = std::count(there->begin(), there->end(), 1);
      line["resident_mean"] = runner.resident_mean();
      line["resident_peak"] = runner.resident_peak();
      out += line.dump() + "\n";
    }
  }
  return out;
}

}  // namespace

void add_running_command(CLI::App& app, absl::Status& outcome) {
  const auto flags = std::make_shared<LiveFlags>();
  CLI::App* command = app.add_subcommand("running", "a budget held all along");
  add_live_flags(*command, *flags);
  command->callback([flags, &outcome] { outcome = Running(*flags).run(); });
}

}  // namespace memdecay::eval
