// Forward passes behind the episode and reading one row of logits; see prober.h.
#include "tests/eval/prober.h"

#include <algorithm>
#include <cmath>

#include "adapters/reference/sampling.h"

namespace memdecay::eval {
namespace {

Answer read_answer(std::span<const float> logits, const Question& question) {
  Answer answer;
  answer.best = reference::greedy_token(logits);
  const auto at = [&](size_t option) { return double{logits[question.options[option]]}; };
  for (size_t i = 1; i < question.options.size(); ++i) {
    if (at(i) > at(answer.chosen)) answer.chosen = i;
  }
  const double top = double{logits[answer.best]};
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(double{logit} - top);
  answer.log_likelihood = at(question.right) - top - std::log(sum);
  return answer;
}

}  // namespace

Prober::Prober(reference::Decoder& decoder, const Scenario& scenario)
    : decoder_(decoder), scenario_(scenario), own_(decoder.layout()) {}

absl::StatusOr<std::vector<float>> Prober::compute(std::span<const TokenId> tokens, size_t position,
                                                   reference::LogitRows logits) {
  absl::StatusOr<reference::ForwardOutput> out =
      decoder_.forward({.tokens = tokens,
                        .first_position = position,
                        .pages = reference::PageTable{read_, write_},
                        .logits = logits});
  if (!out.ok()) return out.status();
  return std::move(out->logits);
}

absl::StatusOr<std::vector<Answer>> Prober::ask(std::span<const std::byte* const> pages,
                                                std::span<const Question* const> questions) {
  size_t longest = 0;
  for (const Question* question : questions) longest = std::max(longest, question->prefix.size());
  const size_t needed = (scenario_.ask.size() + longest + kPageTokens - 1) / kPageTokens;
  const absl::StatusOr<reference::PageCounts> there = own_.counts();
  if (!there.ok()) return there.status();
  const auto more = static_cast<uint32_t>(needed - std::min<size_t>(needed, there->pages));
  if (absl::Status status = own_.extend(more); !status.ok()) return status;
  const absl::StatusOr<reference::PageTable> own = own_.table();
  if (!own.ok()) return own.status();
  read_.assign(pages.begin(), pages.end());
  read_.insert(read_.end(), own->read.begin(), own->read.end());
  write_.assign(pages.size(), nullptr);
  write_.insert(write_.end(), own->write.begin(), own->write.end());

  const size_t begin = scenario_.tokens.size();
  const auto asked = compute(scenario_.ask, begin, reference::LogitRows::kNone);
  if (!asked.ok()) return asked.status();
  std::vector<Answer> answers;
  for (const Question* question : questions) {
    const auto logits =
        compute(question->prefix, begin + scenario_.ask.size(), reference::LogitRows::kLast);
    if (!logits.ok()) return logits.status();
    answers.push_back(read_answer(*logits, *question));
  }
  return answers;
}

std::vector<const Question*> all_questions(const Scenario& scenario) {
  std::vector<const Question*> out;
  for (const Fact& fact : scenario.facts) out.push_back(&fact.question);
  out.push_back(&scenario.instruction);
  return out;
}

}  // namespace memdecay::eval
