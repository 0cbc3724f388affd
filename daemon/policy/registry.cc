// Which policies there are, and which options each can honour. A new policy is one file and one
// line in kForms. Thread: pure functions. Errors: invalid_argument.
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/policy/policy.h"
#include "daemon/policy/scorer.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::policy {
namespace {

constexpr uint32_t kMostPageTokens = 4096;
constexpr uint32_t kMostSinks = 65536;
constexpr size_t kMostRegions = 1024;
constexpr double kLargestB = 1048576.0;
constexpr double kShortestHalfLife = 1.0 / 1024.0;
constexpr double kMostBeta = 8.0;
constexpr double kMostBetaUnfitted = 1.0;  // an expectation that does not fit drowns the rest
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a form can honour beside residency and explicit pins.
enum class Pins : uint8_t { kNone, kSystem };  // regions that are protected if none are named
enum class Sinks : uint8_t { kTaken, kKept };
enum Constants : uint8_t {
  kNoConstants = 0,
  kRegions = 1,  // b and half-life
  kPaper = 2,    // alpha, rho
  kLift = 4,     // beta … expected_lift
  kSeed = 8,
  kWindow = 16,
  kTau = 32,  // tau_uniform
};

struct Form {
  std::string_view name;
  std::string_view twin;  // the same with pinned regions
  Pins pins;
  Sinks sinks;
  int constants;
  std::unique_ptr<Scorer> (*make)(const PolicyOptions&);

  bool has(Constants some) const { return (constants & some) != 0; }
};

using Options = PolicyOptions;

constexpr std::array<Form, 11> kForms = {{
    {"h2o", "h2o+pin", Pins::kNone, Sinks::kKept, kNoConstants,
     [](const Options&) { return make_h2o(); }},
    {"lru", "lru+pin", Pins::kNone, Sinks::kKept, kNoConstants,
     [](const Options&) { return make_lru(); }},
    {"memdecay", "memdecay+pin", Pins::kSystem, Sinks::kKept, kRegions | kPaper | kTau,
     [](const Options& options) { return make_memdecay(options); }},
    {"memdecay_n", "memdecay_n+pin", Pins::kSystem, Sinks::kKept, kRegions | kLift | kTau,
     [](const Options& options) { return make_memdecay_n(options); }},
    {"memdecay_n0", "memdecay_n0+pin", Pins::kSystem, Sinks::kKept, kRegions,
     [](const Options&) { return make_memdecay_n0(); }},
    {"norm_sum", "norm_sum+pin", Pins::kNone, Sinks::kKept, kNoConstants,
     [](const Options&) { return make_norm_sum(); }},
    {"random", "random+pin", Pins::kNone, Sinks::kKept, kSeed,
     [](const Options& options) { return make_random(options); }},
    {"snapkv", "snapkv+pin", Pins::kNone, Sinks::kKept, kWindow,
     [](const Options& options) { return make_snapkv(options); }},
    {"streaming", "streaming+pin", Pins::kNone, Sinks::kKept, kNoConstants,
     [](const Options&) { return make_streaming(); }},
    {"tova", "tova+pin", Pins::kNone, Sinks::kKept, kNoConstants,
     [](const Options&) { return make_tova(); }},
    {"truncation", "truncation+pin", Pins::kNone, Sinks::kTaken, kNoConstants,
     [](const Options&) { return make_truncation(); }},
}};

const Form* find_form(std::string_view name) {
  for (const Form& form : kForms) {
    if (form.name == name || form.twin == name) return &form;
  }
  return nullptr;
}

absl::Status refuse(std::string_view option, std::string there, std::string todo) {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("policy option ", as_absl(option)),
                    std::move(there), std::move(todo));
}

// One optional constant and what it may be. NaN is in no range.
struct Constant {
  std::string_view name;
  std::optional<double> value;
  double least;
  double most;
};

absl::Status check_constants(absl::Span<const Constant> constants, const Form& form,
                             Constants kind) {
  for (const Constant& constant : constants) {
    if (!constant.value.has_value()) continue;
    if (!form.has(kind)) {
      return refuse(constant.name,
                    absl::StrCat("policy ", as_absl(form.name), " has no such constant"),
                    "leave it out or choose a policy that has it");
    }
    if (!(*constant.value >= constant.least && *constant.value <= constant.most)) {
      return refuse(constant.name, absl::StrCat("is ", *constant.value),
                    absl::StrCat("give ", constant.least, " to ", constant.most));
    }
  }
  return absl::OkStatus();
}

// Constants that count something.
absl::Status check_whole(std::string_view name, const std::optional<double>& value) {
  if (!value.has_value() || *value == std::floor(*value)) return absl::OkStatus();
  return refuse(name, absl::StrCat("is ", *value), "give a whole number");
}

absl::Status check_regions(const PolicyOptions& options, const Form& form) {
  if (!options.regions.empty()) {
    if (!form.has(kRegions)) {
      return refuse("regions",
                    absl::StrCat("policy ", as_absl(form.name), " knows no worth of regions"),
                    "leave b and half_life out");
    }
    if (options.regions.size() < kBuiltInRegions || options.regions.size() > kMostRegions) {
      return refuse("regions", absl::StrCat("has ", options.regions.size(), " entries"),
                    "give the seven built-in ones first, then your own");
    }
  }
  for (size_t region = 0; region < options.regions.size(); ++region) {
    const RegionParameters& parameters = options.regions[region];
    const std::string name =
        absl::StrCat(as_absl(region_name(static_cast<RegionId>(region))), " (", region, ")");
    if (!(parameters.b >= 1.0 / kLargestB && parameters.b <= kLargestB)) {
      return refuse("b", absl::StrCat("of region ", name, " is ", parameters.b),
                    "give a number from 2^-20 to 2^20");
    }
    if (!(parameters.half_life_tokens >= kShortestHalfLife)) {
      return refuse("half_life",
                    absl::StrCat("of region ", name, " is ", parameters.half_life_tokens),
                    "give tokens, at least 2^-10; infinity for no decay");
    }
  }
  return absl::OkStatus();
}

absl::Status check_pinned(const PolicyOptions& options, const Form& form) {
  if (!options.pinned.has_value()) return absl::OkStatus();
  if (options.pinned->empty() && options.name == form.twin) {
    return refuse("pinned", absl::StrCat("is empty, but ", options.name, " is to pin regions"),
                  absl::StrCat("name regions, or choose ", as_absl(form.name)));
  }
  const size_t known = options.regions.empty() ? kBuiltInRegions : options.regions.size();
  for (RegionId region : *options.pinned) {
    if (region >= known) {
      return refuse("pinned", absl::StrCat("names region ", region, " of ", known),
                    "define the region first");
    }
  }
  return absl::OkStatus();
}

absl::Status check_table(const DistanceTable& table) {
  for (double lift : table) {
    if (lift >= 1e-3 && lift <= 1e3) continue;
    return refuse("expected_lift", absl::StrCat("holds ", lift), "give 0.001 to 1,000");
  }
  return absl::OkStatus();
}

absl::Status check_expected_lift(const PolicyOptions& options, const Form& form) {
  if (!options.expected_lift.has_value()) {
    if (options.beta.value_or(0.0) <= kMostBetaUnfitted) return absl::OkStatus();
    return refuse("beta", absl::StrCat("is ", *options.beta, ", and no expected_lift is named"),
                  "give at most 1, or the expected_lift that it was fitted with");
  }
  if (!form.has(kLift)) {
    return refuse("expected_lift",
                  absl::StrCat("policy ", as_absl(form.name), " has no such constant"),
                  "leave it out");
  }
  const ExpectedLift& lift = *options.expected_lift;
  absl::Status status = check_table(lift.of(static_cast<RegionId>(kMostRegions)));
  const size_t known = options.regions.empty() ? kBuiltInRegions : options.regions.size();
  for (const auto& [region, table] : lift.regions) {
    if (status.ok()) status = check_table(table);
    if (status.ok() && region >= known) {
      status = refuse("expected_lift", absl::StrCat("names region ", region, " of ", known),
                      "define the region first");
    }
  }
  return status;
}

// The rule, and the constants that only some rules have.
absl::Status check_refresh(const PolicyOptions& options, const Form& form) {
  if (options.refresh_rule.has_value() && !form.has(kLift)) {
    return refuse("refresh_rule", absl::StrCat("policy ", as_absl(form.name), " has no such rule"),
                  "leave it out or choose memdecay_n");
  }
  const RefreshRule rule = options.refresh_rule.value_or(RefreshRule::kNone);
  const bool ranks = rule == RefreshRule::kLift || rule == RefreshRule::kExpected;
  if (form.has(kLift) && options.tau_uniform.has_value() && rule != RefreshRule::kUniform) {
    return refuse("tau_uniform", "is set, but the refresh_rule is not uniform",
                  "leave it out, or set refresh_rule to uniform");
  }
  if (ranks) return absl::OkStatus();
  for (const auto& [name, value] : {std::pair("refresh_lift", options.refresh_lift),
                                    std::pair("refresh_fraction", options.refresh_fraction)}) {
    if (!value.has_value()) continue;
    return refuse(name, "is set, but the refresh_rule knows no lift",
                  "leave it out, or set refresh_rule to lift or expected");
  }
  return absl::OkStatus();
}

absl::Status check_protections(const PolicyOptions& options) {
  if (options.page_tokens == 0 || options.page_tokens > kMostPageTokens) {
    return refuse("page_tokens", absl::StrCat("is ", options.page_tokens), "give 1 to 4,096");
  }
  if (options.sinks > kMostSinks) {
    return refuse("sinks", absl::StrCat("is ", options.sinks), "give at most 65,536 positions");
  }
  return absl::OkStatus();
}

absl::Status check(const PolicyOptions& options, const Form& form) {
  const Constant paper[] = {{"alpha", options.alpha, 0.0, 1e6}, {"rho", options.rho, 0.0, 1.0}};
  const Constant uniform[] = {{"tau_uniform", options.tau_uniform, 0.0, 1e6}};
  const Constant lift[] = {{"beta", options.beta, 0.0, kMostBeta},
                           {"gamma", options.gamma, 0.0, kMostBeta},
                           {"decay_cap", options.decay_cap, 0.0, kInfinity},
                           {"memory_tokens", options.memory_tokens, 1.0, 1e9},
                           {"prior_evidence", options.prior_evidence, 1e-3, 1e6},
                           {"refresh_lift", options.refresh_lift, 0.0, 1e6},
                           {"refresh_fraction", options.refresh_fraction, 0.0, 1.0}};
  const Constant seed[] = {{"seed", options.seed, 0.0, 0x1p53}};
  const Constant window[] = {{"window_queries", options.window_queries, 1.0, 32.0}};
  absl::Status status = check_protections(options);
  if (status.ok()) status = check_regions(options, form);
  if (status.ok()) status = check_pinned(options, form);
  if (status.ok()) status = check_constants(paper, form, kPaper);
  if (status.ok()) status = check_constants(uniform, form, kTau);
  if (status.ok()) status = check_constants(lift, form, kLift);
  if (status.ok()) status = check_constants(seed, form, kSeed);
  if (status.ok()) status = check_constants(window, form, kWindow);
  if (status.ok()) status = check_whole("seed", options.seed);
  if (status.ok()) status = check_whole("window_queries", options.window_queries);
  if (status.ok()) status = check_expected_lift(options, form);
  if (status.ok()) status = check_refresh(options, form);
  return status;
}

// What was left to the form.
void complete(PolicyOptions& options, const Form& form) {
  if (options.regions.empty()) options.regions = default_regions();
  if (!options.pinned.has_value()) {
    const bool pins = form.pins == Pins::kSystem || options.name == form.twin;
    options.pinned.emplace();
    if (pins) options.pinned->push_back(region_id(Region::kSystem));
  }
  if (form.sinks == Sinks::kTaken) options.sinks = 0;
}

}  // namespace

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  for (const Form& form : kForms) {
    names.push_back(form.name);
    names.push_back(form.twin);
  }
  return names;
}

absl::StatusOr<std::unique_ptr<Policy>> make_policy(PolicyOptions options) {
  const Form* const form = find_form(options.name);
  if (form == nullptr) {
    std::string known;
    for (const Form& each : kForms) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", as_absl(each.name));
    }
    return refuse("name", absl::StrCat("'", options.name, "' is unknown"),
                  absl::StrCat("choose one of ", known, "; with +pin its system pages stay"));
  }
  const absl::Status status = check(options, *form);
  if (!status.ok()) return status;
  complete(options, *form);
  std::unique_ptr<Scorer> scorer = form->make(options);
  return std::make_unique<Policy>(std::move(options), std::move(scorer));
}

}  // namespace memdecay::policy
