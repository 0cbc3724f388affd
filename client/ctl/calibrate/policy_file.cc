// A calibration as a configuration (see report.h): half-lives and tables, each with where it is
// from.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/ctl/calibrate/report.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::ctl {
namespace {

std::string yaml_number(double value) {
  return std::isinf(value) ? ".inf" : absl::StrFormat("%.4g", value);
}

// Built-in regions by name; a region of one's own by its number, which is what it has in a trace.
std::string key_of(const CalibrationOutcome& outcome, size_t region) {
  const std::string& name = outcome.header.regions[region];
  return region_from_name(name) == static_cast<RegionId>(region) ? name : absl::StrCat(region);
}

// The last number stands for all distances beyond.
std::string list(const policy::DistanceTable& table) {
  size_t count = table.size();
  while (count > 1 && table[count - 1] == table[count - 2]) --count;
  std::string out = "[";
  for (size_t i = 0; i < count; ++i) {
    absl::StrAppend(&out, i > 0 ? ", " : "", absl::StrFormat("%.3g", table[i]));
  }
  return out + "]";
}

}  // namespace

std::string calibration_yaml(const CalibrationOutcome& outcome) {
  using calibration::RegionResult;
  std::string regions;
  std::string lifts = absl::StrCat("    all: ", list(outcome.expected.table()), "\n");
  for (size_t i = 0; i < outcome.result.regions.size(); ++i) {
    const RegionResult& region = outcome.result.regions[i];
    if (!outcome.shown[i]) continue;
    const std::string key = key_of(outcome, i);
    if (region.verdict == RegionResult::Verdict::kFitted) {
      absl::StrAppendFormat(
          &regions, "    %s: {half_life_tokens: %s}  # 95 %%: %s to %s; default %s\n", key,
          yaml_number(region.half_life), yaml_number(region.interval.low),
          yaml_number(region.interval.high), yaml_number(region.default_half_life));
    }
    if (region.sessions >= calibration::kLeastSessions && i < calibration::kRegions) {
      absl::StrAppend(&lifts, "    ", key, ": ", list(outcome.expected.table(i)), "\n");
    }
  }
  const bool unnamed = outcome.channels.size() == 1 && outcome.channels.front().empty();
  std::string out = absl::StrFormat(
      "# By memdecayctl calibrate, from %d sessions and %d observations%s.\n"
      "# A configuration by itself, or copy what you need; what is not here keeps its default.\n"
      "policy:\n  name: memdecay_n\n",
      outcome.counts.sessions, outcome.counts.observations,
      unnamed ? ""
              : absl::StrCat(" of channel ", absl::StrJoin(outcome.channels, ", "),
                             ": right for an engine that observes the same"));
  if (!regions.empty()) absl::StrAppend(&out, "  regions:\n", regions);
  return absl::StrCat(out, "  expected_lift:\n", lifts);
}

}  // namespace memdecay::ctl
