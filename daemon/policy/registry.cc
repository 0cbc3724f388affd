// Which policies there are, and which options each can honour. A new policy is one file and one
// line in kForms. Thread: pure functions. Errors: invalid_argument.
#include <array>
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

struct Form {
  std::string_view name;
  bool uses_regions;
  bool paper_constants;  // alpha, rho, tau_uniform
  bool lift_constants;   // beta … expected_lift
  std::unique_ptr<Scorer> (*make)(const PolicyOptions&);
};

constexpr std::array<Form, 4> kForms = {{
    {"lru", false, false, false, [](const PolicyOptions&) { return make_lru(); }},
    {"memdecay", true, true, false, [](const PolicyOptions& o) { return make_memdecay(o); }},
    {"memdecay_n", true, false, true, [](const PolicyOptions& o) { return make_memdecay_n(o); }},
    {"memdecay_n0", true, false, false, [](const PolicyOptions&) { return make_memdecay_n0(); }},
}};

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

enum class Honoured : uint8_t { kNo, kYes };

absl::Status check_constants(absl::Span<const Constant> constants, const Form& form,
                             Honoured honoured) {
  for (const Constant& constant : constants) {
    if (!constant.value.has_value()) continue;
    if (honoured == Honoured::kNo) {
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

absl::Status check_regions(const PolicyOptions& options, const Form& form) {
  if (!options.regions.empty()) {
    if (!form.uses_regions) {
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
  const size_t known = options.regions.empty() ? kBuiltInRegions : options.regions.size();
  for (RegionId region : options.pinned) {
    if (region >= known) {
      return refuse("pinned", absl::StrCat("names region ", region, " of ", known),
                    "define the region first");
    }
  }
  return absl::OkStatus();
}

absl::Status check_expected_lift(const PolicyOptions& options, const Form& form) {
  if (options.expected_lift.empty()) {
    if (options.beta.value_or(0.0) > 1.0) {
      return refuse("beta", absl::StrCat("is ", *options.beta, " without a calibrated table"),
                    "give at most 1, or expected_lift");
    }
    return absl::OkStatus();
  }
  if (!form.lift_constants) {
    return refuse("expected_lift",
                  absl::StrCat("policy ", as_absl(form.name), " has no such constant"),
                  "leave it out");
  }
  const size_t regions = options.regions.empty() ? kBuiltInRegions : options.regions.size();
  if (options.expected_lift.size() != regions) {
    return refuse("expected_lift", absl::StrCat("has ", options.expected_lift.size(), " tables"),
                  absl::StrCat("give one for each of the ", regions, " regions"));
  }
  for (const DistanceTable& table : options.expected_lift) {
    for (double lift : table) {
      if (!(lift >= 1e-3 && lift <= 1e3)) {
        return refuse("expected_lift", absl::StrCat("holds ", lift), "give 0.001 to 1,000");
      }
    }
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
  const Constant paper[] = {{"alpha", options.alpha, 0.0, 1e6},
                            {"rho", options.rho, 0.0, 1.0},
                            {"tau_uniform", options.tau_uniform, 0.0, 1e6}};
  const Constant lift[] = {{"beta", options.beta, 0.0, 2.0},
                           {"decay_cap", options.decay_cap, 0.0, 1024.0},
                           {"memory_tokens", options.memory_tokens, 1.0, 1e9},
                           {"prior_evidence", options.prior_evidence, 1e-3, 1e6},
                           {"refresh_lift", options.refresh_lift, 0.0, 1e6},
                           {"refresh_fraction", options.refresh_fraction, 0.0, 1.0}};
  absl::Status status = check_protections(options);
  if (status.ok()) status = check_regions(options, form);
  if (status.ok()) {
    status = check_constants(paper, form, form.paper_constants ? Honoured::kYes : Honoured::kNo);
  }
  if (status.ok()) {
    status = check_constants(lift, form, form.lift_constants ? Honoured::kYes : Honoured::kNo);
  }
  if (status.ok()) status = check_expected_lift(options, form);
  return status;
}

}  // namespace

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  for (const Form& form : kForms) names.push_back(form.name);
  return names;
}

absl::StatusOr<std::unique_ptr<Policy>> make_policy(PolicyOptions options) {
  for (const Form& form : kForms) {
    if (form.name != options.name) continue;
    absl::Status status = check(options, form);
    if (!status.ok()) return status;
    if (options.regions.empty()) options.regions = default_regions();
    std::unique_ptr<Scorer> scorer = form.make(options);
    return std::make_unique<Policy>(std::move(options), std::move(scorer));
  }
  std::string known;
  for (const Form& form : kForms) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", as_absl(form.name));
  }
  return refuse("name", absl::StrCat("'", options.name, "' is unknown"),
                absl::StrCat("choose one of ", known));
}

}  // namespace memdecay::policy
