// Which policies there are, and which options each can honour. A new policy is one file and one
// line in kForms. Thread: pure functions. Errors: invalid_argument.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/policy/keys.h"
#include "daemon/policy/option_checks.h"
#include "daemon/policy/policy.h"
#include "daemon/policy/scorer.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::policy {
namespace {

constexpr uint32_t kMostPageTokens = 4096;
constexpr uint32_t kMostSinks = 65536;
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
  kTau = 32,       // tau_uniform
  kPractice = 64,  // clocks, growth, turn_decay, groups, boost, safety valve
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
    {"memdecay", "memdecay+pin", Pins::kSystem, Sinks::kKept, kRegions | kPaper | kTau | kPractice,
     [](const Options& options) { return make_memdecay(options); }},
    {"memdecay_n", "memdecay_n+pin", Pins::kSystem, Sinks::kKept,
     kRegions | kLift | kTau | kPractice,
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
      return refuse_option(constant.name,
                           absl::StrCat("policy ", as_absl(form.name), " has no such constant"),
                           "leave it out or choose a policy that has it");
    }
    if (!(*constant.value >= constant.least && *constant.value <= constant.most)) {
      return refuse_option(constant.name, absl::StrCat("is ", *constant.value),
                           absl::StrCat("give ", constant.least, " to ", constant.most));
    }
  }
  return absl::OkStatus();
}

// Constants that count something.
absl::Status check_whole(std::string_view name, const std::optional<double>& value) {
  if (!value.has_value() || *value == std::floor(*value)) return absl::OkStatus();
  return refuse_option(name, absl::StrCat("is ", *value), "give a whole number");
}

// Boost and safety valve: which option asks for which.
absl::Status check_practice(const PolicyOptions& options, const Form& form) {
  if (options.valve_regions.has_value()) {
    if (!options.valve_score.has_value()) {
      return refuse_option("valve_regions", "is set, but valve_score is not",
                           "set valve_score, or leave it out");
    }
    if (options.valve_regions->empty()) {
      return refuse_option("valve_regions", "is empty", "name regions, or leave valve_score out");
    }
    const absl::Status status = check_named("valve_regions", *options.valve_regions, options);
    if (!status.ok()) return status;
  }
  if (options.boost_neighbours.has_value() && !options.boost.has_value()) {
    return refuse_option("boost_neighbours", "is set, but boost is not",
                         "set boost, or leave it out");
  }
  const RefreshRule rule = options.refresh_rule.value_or(RefreshRule::kNone);
  if (options.boost.has_value() && form.has(kLift) && rule == RefreshRule::kNone) {
    return refuse_option("boost", "is set, but refresh_rule none refers to nothing",
                         "choose another refresh_rule, or leave it out");
  }
  return check_whole("boost_neighbours", options.boost_neighbours);
}

absl::Status check_regions(const PolicyOptions& options, const Form& form) {
  if (!options.regions.empty()) {
    if (!form.has(kRegions)) {
      return refuse_option(
          "regions", absl::StrCat("policy ", as_absl(form.name), " knows no worth of regions"),
          "leave b and half_life out");
    }
    if (options.regions.size() < kBuiltInRegions || options.regions.size() > kMostRegions) {
      return refuse_option("regions", absl::StrCat("has ", options.regions.size(), " entries"),
                           "give the seven built-in ones first, then your own");
    }
  }
  for (size_t region = 0; region < options.regions.size(); ++region) {
    const std::string name = region_word(options, static_cast<RegionId>(region));
    absl::Status status = check_region(options.regions[region], name);
    if (status.ok() && !form.has(kPractice) && is_special(options.regions[region])) {
      status =
          refuse_option("regions",
                        absl::StrCat("policy ", as_absl(form.name), " counts tokens alone, region ",
                                     name, " is to age otherwise"),
                        "leave turns, seconds, doubling, turn_decay and held out");
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status check_pinned(const PolicyOptions& options, const Form& form) {
  if (!options.pinned.has_value()) return absl::OkStatus();
  if (options.pinned->empty() && options.name == form.twin) {
    return refuse_option("pinned",
                         absl::StrCat("is empty, but ", options.name, " is to pin regions"),
                         absl::StrCat("name regions, or choose ", as_absl(form.name)));
  }
  return check_named("pinned", *options.pinned, options);
}

absl::Status check_expected_lift(const PolicyOptions& options, const Form& form) {
  if (!options.expected_lift.has_value()) {
    if (options.beta.value_or(0.0) <= kMostBetaUnfitted) return absl::OkStatus();
    return refuse_option("beta",
                         absl::StrCat("is ", *options.beta, ", and no expected_lift is named"),
                         "give at most 1, or the expected_lift that it was fitted with");
  }
  if (!form.has(kLift)) {
    return refuse_option("expected_lift",
                         absl::StrCat("policy ", as_absl(form.name), " has no such constant"),
                         "leave it out");
  }
  return check_lift(*options.expected_lift, options);
}

// The rule, and the constants that only some rules have.
absl::Status check_refresh(const PolicyOptions& options, const Form& form) {
  if (options.refresh_rule.has_value() && !form.has(kLift)) {
    return refuse_option("refresh_rule",
                         absl::StrCat("policy ", as_absl(form.name), " has no such rule"),
                         "leave it out or choose memdecay_n");
  }
  const RefreshRule rule = options.refresh_rule.value_or(RefreshRule::kNone);
  const bool ranks = rule == RefreshRule::kLift || rule == RefreshRule::kExpected;
  if (form.has(kLift) && options.tau_uniform.has_value() && rule != RefreshRule::kUniform) {
    return refuse_option("tau_uniform", "is set, but the refresh_rule is not uniform",
                         "leave it out, or set refresh_rule to uniform");
  }
  if (ranks) return absl::OkStatus();
  for (const auto& [name, value] : {std::pair("refresh_lift", options.refresh_lift),
                                    std::pair("refresh_fraction", options.refresh_fraction)}) {
    if (!value.has_value()) continue;
    return refuse_option(name, "is set, but the refresh_rule knows no lift",
                         "leave it out, or set refresh_rule to lift or expected");
  }
  return absl::OkStatus();
}

absl::Status check_protections(const PolicyOptions& options) {
  if (options.page_tokens == 0 || options.page_tokens > kMostPageTokens) {
    return refuse_option("page_tokens", absl::StrCat("is ", options.page_tokens),
                         "give 1 to 4,096");
  }
  if (options.sinks > kMostSinks) {
    return refuse_option("sinks", absl::StrCat("is ", options.sinks),
                         "give at most 65,536 positions");
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
  const Constant practice[] = {{"boost", options.boost, 0.0, 8.0},
                               {"boost_neighbours", options.boost_neighbours, 0.0, 64.0},
                               {"valve_score", options.valve_score, -1e6, 1e6}};
  const Constant seed[] = {{"seed", options.seed, 0.0, 0x1p53}};
  const Constant window[] = {{"window_queries", options.window_queries, 1.0, 32.0}};
  absl::Status status = check_protections(options);
  if (status.ok()) status = check_regions(options, form);
  if (status.ok()) status = check_own_regions(options);
  if (status.ok()) status = check_pinned(options, form);
  if (status.ok()) status = check_constants(paper, form, kPaper);
  if (status.ok()) status = check_constants(uniform, form, kTau);
  if (status.ok()) status = check_constants(lift, form, kLift);
  if (status.ok()) status = check_constants(practice, form, kPractice);
  if (status.ok()) status = check_practice(options, form);
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
  options.regions.resize(options.known_regions());
  if (options.valve_score.has_value() && !options.valve_regions.has_value()) {
    options.valve_regions = {region_id(Region::kUser), region_id(Region::kScratchpad)};
  }
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

PolicyOptions completed(PolicyOptions options) {
  if (const Form* const form = find_form(options.name)) complete(options, *form);
  return options;
}

void leave_foreign(PolicyOptions& options, std::string_view before) {
  const Form* const form = find_form(options.name);
  if (form == nullptr) return;
  const auto forget = [](auto&... places) { (places.reset(), ...); };
  if (options.name != before) options.pinned.reset();
  if (!form->has(kRegions)) options.regions.clear();
  if (!form->has(kPaper)) forget(options.alpha, options.rho);
  if (!form->has(kSeed)) options.seed.reset();
  if (!form->has(kWindow)) options.window_queries.reset();
  if (!form->has(kPractice)) {
    forget(options.boost, options.boost_neighbours, options.valve_score, options.valve_regions);
    for (RegionParameters& region : options.regions) {
      if (is_special(region)) region = {.b = region.b};
    }
  }
  if (!form->has(kLift)) {
    forget(options.beta, options.gamma, options.decay_cap, options.memory_tokens,
           options.prior_evidence, options.expected_lift, options.refresh_rule);
  }
  const RefreshRule rule = options.refresh_rule.value_or(RefreshRule::kNone);
  const bool ranks = rule == RefreshRule::kLift || rule == RefreshRule::kExpected;
  if (!form->has(kLift) || !ranks) forget(options.refresh_lift, options.refresh_fraction);
  if (!form->has(kTau) || (form->has(kLift) && rule != RefreshRule::kUniform)) {
    options.tau_uniform.reset();
  }
  if (form->has(kLift) && rule == RefreshRule::kNone) {
    forget(options.boost, options.boost_neighbours);
  }
}

absl::StatusOr<std::unique_ptr<Policy>> make_policy(PolicyOptions options) {
  const Form* const form = find_form(options.name);
  if (form == nullptr) {
    std::string known;
    for (const Form& each : kForms) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", as_absl(each.name));
    }
    return refuse_option(
        "name", absl::StrCat("'", options.name, "' is unknown"),
        absl::StrCat("choose one of ", known, "; with +pin its system pages stay"));
  }
  const absl::Status status = check(options, *form);
  if (!status.ok()) return status;
  complete(options, *form);
  std::unique_ptr<Scorer> scorer = form->make(options);
  return std::make_unique<Policy>(std::move(options), std::move(scorer));
}

}  // namespace memdecay::policy
