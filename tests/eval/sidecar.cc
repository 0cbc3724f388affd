// JSON by nlohmann; see sidecar.h.
#include "tests/eval/sidecar.h"

#include <nlohmann/json.hpp>

namespace memdecay::eval {
namespace {

using Json = nlohmann::ordered_json;

Json told(const Question& question, const Answer& answer) {
  return {{"choice", answer.chosen == question.right ? 1 : 0},
          {"greedy", answer.best == question.options[question.right] ? 1 : 0},
          {"log_likelihood", answer.log_likelihood}};
}

}  // namespace

std::string sidecar(const Scenario& scenario, std::span<const Answer> answers) {
  Json out = {{"set", scenario.set},
              {"seed", scenario.seed},
              {"tokens", scenario.tokens.size()},
              {"pages", scenario.pages()},
              {"prefill_pages", scenario.prefill_pages()},
              {"facts", Json::array()},
              {"instruction_pages", scenario.instruction_pages},
              {"instruction_full", told(scenario.instruction, answers.back())}};
  for (size_t i = 0; i < scenario.facts.size(); ++i) {
    const Fact& fact = scenario.facts[i];
    Json row = {{"id", fact.id},
                {"region", fact.region},
                {"planting", fact.planting},
                {"used", fact.use != "none"},
                {"use", fact.use},
                {"pages", fact.pages},
                {"used_at_step", nullptr},
                {"full", told(fact.question, answers[i])}};
    if (fact.used_at_step) row["used_at_step"] = *fact.used_at_step;
    out["facts"].push_back(std::move(row));
  }
  return out.dump(1) + "\n";
}

}  // namespace memdecay::eval
