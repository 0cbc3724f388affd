// See plan.h.
#include "tests/eval/plan.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/contract/error.h"

namespace memdecay::eval {
namespace {

using Json = nlohmann::json;

constexpr const char* kSeed = "{seed}";
constexpr size_t kMostRuns = 4096;
const std::set<std::string> kPlanKeys = {"about", "budgets", "channels", "runs"};
const std::set<std::string> kRunKeys = {"policy",  "variant", "set", "channel",   "sampling",
                                        "queries", "prefill", "as",  "pin_facts", "budgets"};

absl::Status refuse(const std::string& where, const std::string& there) {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("plan ", where), there,
                    "tests/eval/plan.h says what a plan is");
}

// The entries of a list, or the one value that stands there.
std::vector<Json> each(const Json& object, const char* key, const Json& otherwise) {
  const Json value = object.value(key, otherwise);
  if (!value.is_array()) return {value};
  return {value.begin(), value.end()};
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

absl::Status check_keys(const std::string& where, const Json& object,
                        const std::set<std::string>& known) {
  if (!object.is_object()) return refuse(where, "is no JSON object");
  for (const auto& [key, value] : object.items()) {
    if (!known.contains(key)) return refuse(where, absl::StrCat("has the unknown key ", key));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> read_budgets(const std::string& where, const Json& list) {
  const auto budgets = list.get<std::vector<uint32_t>>();
  if (budgets.empty()) return refuse(where, "names no budget");
  for (size_t i = 0; i < budgets.size(); ++i) {
    const uint32_t most = i == 0 ? 100 : budgets[i - 1] - 1;
    if (budgets[i] == 0 || budgets[i] > most) {
      return refuse(where, absl::StrCat("has the budget ", budgets[i], " where 1 to ", most,
                                        " can stand: percent, falling"));
    }
  }
  return budgets;
}

// What the lists of one entry do not change.
absl::StatusOr<PlannedRun> read_common(const std::string& where, const Json& entry,
                                       const std::vector<uint32_t>& budgets) {
  PlannedRun run;
  run.variant = entry.value("variant", "default");
  run.as = entry.value("as", "");
  if (entry.value("pin_facts", false)) run.facts = PlannedRun::Facts::kPinned;
  run.budgets = budgets;
  if (entry.contains("budgets")) {
    auto own = read_budgets(where, entry.at("budgets"));
    if (!own.ok()) return own.status();
    run.budgets = *std::move(own);
  }
  if (!entry.contains("set")) return run;
  for (const auto& [key, value] : entry.at("set").items()) run.settings[key] = text_of(value);
  return run;
}

// One of two words.
template <typename Choice>
absl::Status read_choice(const std::string& where, const Json& value, const char* first,
                         const char* second, Choice& choice) {
  const std::string word = text_of(value);
  if (word != first && word != second) {
    return refuse(where,
                  absl::StrCat("has \"", word, "\" where ", first, " or ", second, " stands"));
  }
  choice = word == first ? Choice{0} : Choice{1};
  return absl::OkStatus();
}

// Every way in which the entry wants the policy to be observed.
absl::Status read_ways(const std::string& where, const Json& entry, PlannedRun run, Plan& plan) {
  for (const Json& channel : each(entry, "channel", "all")) {
    for (const Json& sampling : each(entry, "sampling", 1)) {
      for (const Json& queries : each(entry, "queries", "last")) {
        for (const Json& prefill : each(entry, "prefill", "observed")) {
          run.channel = channel.get<std::string>();
          run.sampling = sampling.get<uint32_t>();
          if (run.sampling == 0) return refuse(where, "has sampling 0; give 1 or more");
          absl::Status status = read_choice(where, queries, "last", "mean", run.queries);
          if (!status.ok()) return status;
          status = read_choice(where, prefill, "observed", "unobserved", run.prefill);
          if (!status.ok()) return status;
          plan.runs.push_back(run);
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status read_run(const std::string& where, const Json& entry,
                      const std::vector<uint32_t>& budgets, Plan& plan) {
  if (absl::Status status = check_keys(where, entry, kRunKeys); !status.ok()) return status;
  if (!entry.contains("policy")) return refuse(where, "names no policy");
  const absl::StatusOr<PlannedRun> common = read_common(where, entry, budgets);
  if (!common.ok()) return common.status();
  for (const Json& policy : each(entry, "policy", "")) {
    PlannedRun run = *common;
    run.policy = policy.get<std::string>();
    if (run.as.empty()) run.as = run.policy;
    if (absl::Status status = read_ways(where, entry, run, plan); !status.ok()) return status;
  }
  if (plan.runs.size() > kMostRuns) return refuse(where, "makes more than 4,096 runs");
  return absl::OkStatus();
}

absl::StatusOr<Plan> take(const std::string& path, const Json& text) {
  if (absl::Status status = check_keys(path, text, kPlanKeys); !status.ok()) return status;
  const auto budgets = read_budgets(path, text.value("budgets", Json::array({50, 25})));
  if (!budgets.ok()) return budgets.status();
  Plan plan;
  size_t number = 0;
  for (const Json& entry : text.at("runs")) {
    const std::string where = absl::StrCat(path, " run ", number++);
    if (absl::Status status = read_run(where, entry, *budgets, plan); !status.ok()) return status;
  }
  const auto names = text.value("channels", std::map<std::string, std::string>());
  std::set<std::string> keys;
  for (PlannedRun& run : plan.runs) {
    const auto named = names.find(run.channel);
    run.heads = named == names.end() ? run.channel : named->second;
    if (!keys.insert(run.key()).second)
      return refuse(path, absl::StrCat("has ", run.key(), " twice"));
  }
  if (plan.runs.empty()) return refuse(path, "has no runs");
  return plan;
}

}  // namespace

bool PlannedRun::differs_by_seed() const {
  return std::any_of(settings.begin(), settings.end(), [](const auto& setting) {
    return setting.second.find(kSeed) != std::string::npos;
  });
}

std::vector<std::string> PlannedRun::daemon_settings(uint64_t seed) const {
  std::vector<std::string> words = {absl::StrCat("policy.name=", policy)};
  for (const auto& [key, value] : settings) {
    words.push_back(
        absl::StrCat(key, "=", absl::StrReplaceAll(value, {{kSeed, std::to_string(seed)}})));
  }
  return words;
}

std::string PlannedRun::queries_name() const { return queries == Queries::kLast ? "last" : "mean"; }

std::string PlannedRun::prefill_name() const {
  return prefill == Prefill::kObserved ? "observed" : "unobserved";
}

std::string PlannedRun::key() const {
  return absl::StrCat(as, "/", variant, "/", channel, "/", sampling, "/", queries_name(), "/",
                      prefill_name());
}

std::vector<std::string> Plan::heads() const {
  std::set<std::string> all;
  for (const PlannedRun& run : runs) all.insert(run.heads);
  return {all.begin(), all.end()};
}

absl::StatusOr<Plan> read_plan(const std::string& path) {
  std::ifstream file(path);
  const Json text = Json::parse(file, nullptr, false);
  if (text.is_discarded()) return refuse(path, "is missing or no JSON");
  try {
    return take(path, text);
  } catch (const Json::exception& exception) {
    return refuse(path, exception.what());
  }
}

}  // namespace memdecay::eval
