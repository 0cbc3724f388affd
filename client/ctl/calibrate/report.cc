// Text, notes, JSON (see report.h); policy file and picture have files of their own.
#include "client/ctl/calibrate/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace memdecay::ctl {
namespace {

using calibration::ExpectedLift;
using calibration::RegionResult;
using Verdict = RegionResult::Verdict;

constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string tokens(double half_life) {
  return std::isinf(half_life) ? "inf" : absl::StrFormat("%.3g", half_life);
}

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFitted:
      return "fitted";
    case Verdict::kNothingSeen:
      return "nothing_seen";
    case Verdict::kTooFewSessions:
      return "too_few_sessions";
    case Verdict::kNoShape:
      return "no_shape";
  }
  return "";
}

std::string why_kept(const RegionResult& region) {
  switch (region.verdict) {
    case Verdict::kFitted:
      return "";
    case Verdict::kNothingSeen:
      return "default kept: no such page was observed";
    case Verdict::kTooFewSessions:
      return absl::StrCat("default kept: ", region.sessions, " sessions, ",
                          calibration::kLeastSessions, " are needed");
    case Verdict::kNoShape:
      return "default kept: its lift does not fall with age to a floor";
  }
  return "";
}

std::string change(const RegionResult& region) {
  if (std::isinf(region.half_life)) return "none seen";
  return absl::StrFormat("x %.2f", region.half_life / region.default_half_life);
}

// One bar a value, an eighth of a block for each step from the lowest to the highest logarithm;
// NaN: nothing was seen there.
std::string bars(const std::vector<double>& values, double lowest, double highest) {
  std::string out;
  for (const double value : values) {
    if (std::isnan(value)) {
      out += ' ';
      continue;
    }
    const double part = (std::log2(value) - lowest) / std::max(highest - lowest, 1e-9);
    out += kBars[static_cast<size_t>(std::clamp(part, 0.0, 0.999) * std::size(kBars))];
  }
  return out;
}

struct Row {
  std::string name;
  std::vector<double> values;  // NaN: nothing
};

// Rows on one logarithmic scale, with the range under them.
std::string plot(const std::string& title, const std::vector<Row>& rows, size_t doublings_each) {
  double lowest = 1e9, highest = -1e9;
  size_t widest = 0;
  for (const Row& row : rows) {
    for (const double value : row.values) {
      if (std::isnan(value)) continue;
      lowest = std::min(lowest, std::log2(value));
      highest = std::max(highest, std::log2(value));
    }
    widest = std::max(widest, row.values.size());
  }
  if (lowest > highest) return "";
  std::string out = absl::StrCat("\n", title, "\n");
  for (const Row& row : rows) {
    absl::StrAppendFormat(&out, "  %-12s|%s|\n", row.name, bars(row.values, lowest, highest));
  }
  absl::StrAppendFormat(&out, "  %-12s 1", "");
  for (size_t bin = 8 * doublings_each / 2, at = 1; bin < widest; bin += 4 * doublings_each) {
    const std::string mark = absl::StrCat(uint64_t{1} << (bin / doublings_each));
    out += std::string(bin > at ? bin - at : 0, ' ') + mark;
    at = std::max(at, bin) + mark.size();
  }
  absl::StrAppendFormat(&out, "\n  from ▁ %.2g to █ %.2g, logarithmic\n", std::exp2(lowest),
                        std::exp2(highest));
  return out;
}

std::vector<double> means(const ExpectedLift::Bins& bins) {
  std::vector<double> out;
  for (const ExpectedLift::Bin& bin : bins) {
    out.push_back(bin.mean() > 0 ? bin.mean() : std::nan(""));
  }
  while (!out.empty() && std::isnan(out.back())) out.pop_back();
  return out;
}

// Lift by bucket of age, two buckets a doubling.
std::vector<double> by_age(const RegionResult& region) {
  std::vector<double> out;
  for (const calibration::AgePoint& point : region.by_age) {
    const size_t bucket = calibration::bucket_of(static_cast<uint64_t>(point.age));
    out.resize(std::max(out.size(), bucket + 1), std::nan(""));
    if (point.lift > 0) out[bucket] = point.lift;
  }
  return out;
}

}  // namespace

std::string calibration_text(const CalibrationOutcome& outcome) {
  std::string out = absl::StrFormat("%-12s %9s %16s %8s %8s %9s %13s %8s %9s\n", "region",
                                    "half-life", "95 % interval", "measured", "c", "sessions",
                                    "observations", "default", "change");
  std::vector<Row> ages, distances;
  distances.push_back({"all", means(outcome.expected.all())});
  for (size_t i = 0; i < outcome.result.regions.size(); ++i) {
    const RegionResult& region = outcome.result.regions[i];
    if (!outcome.shown[i]) continue;
    const std::string& name = outcome.header.regions[i];
    if (region.verdict == Verdict::kFitted) {
      absl::StrAppendFormat(
          &out, "%-12s %9s %16s %8s %8.2f %9d %13d %8s %9s\n", name, tokens(region.half_life),
          absl::StrCat("[", tokens(region.interval.low), ", ", tokens(region.interval.high), "]"),
          tokens(region.measured), region.fresh, region.sessions, region.observations,
          tokens(region.default_half_life), change(region));
    } else {
      absl::StrAppendFormat(&out, "%-12s %9s %16s %8s %8s %9d %13d %8s  %s\n", name,
                            tokens(region.half_life), "", "", "", region.sessions,
                            region.observations, tokens(region.default_half_life),
                            why_kept(region));
    }
    ages.push_back({name, by_age(region)});
    if (i < calibration::kRegions) distances.push_back({name, means(outcome.expected.of(i))});
  }
  absl::StrAppendFormat(&out,
                        "half-lives in generated tokens; c: attention of a fresh page above the "
                        "floor f = %.2f, in multiples of a session's middle page\n",
                        outcome.result.floor);
  out +=
      plot("lift by token distance (a policy's expected_lift; 1 is an even share)", distances, 1);
  out +=
      plot("lift by age in generated tokens (distance and the session's level taken out)", ages, 2);
  return out;
}

std::string calibration_notes(const CalibrationOutcome& outcome) {
  const calibration::WatchCounts& counts = outcome.counts;
  std::string out =
      absl::StrFormat("calibrate: %d sessions, %d pages, %d observations of %s\n", counts.sessions,
                      counts.pages, counts.observations,
                      outcome.channels.size() == 1 && outcome.channels.front().empty()
                          ? "what the daemon was sent"
                          : absl::StrCat("channel ", absl::StrJoin(outcome.channels, ", ")));
  const auto note = [&out](uint64_t count, const char* what) {
    if (count > 0) absl::StrAppend(&out, "calibrate: ", count, " ", what, "\n");
  };
  note(counts.beyond, "observations left out: their shares do not sum to 1");
  note(counts.no_mass, "observations left out: hardly any mass on pages that can move");
  note(counts.unknown_pages, "mentions of pages that were never sealed");
  note(counts.lost, "events are missing: the recorder could not keep up");
  note(outcome.pass.ignored_fields, "unknown fields ignored");
  note(outcome.pass.ignored_events, "events of unknown kinds ignored");
  if (!outcome.pass.an_ignored_name.empty()) {
    absl::StrAppend(&out, "calibrate: unknown, for example: ", outcome.pass.an_ignored_name, "\n");
  }
  if (counts.absent_views > 0) {
    absl::StrAppendFormat(&out,
                          "calibrate: at %.1f %% of the looks a page had been evicted, which is "
                          "informative: half-lives are biased by it\n",
                          outcome.absence() * 100);
  }
  if (outcome.result.fit == calibration::Result::Fit::kNotConverged) {
    out += "calibrate: the fit did not settle; every default is kept\n";
  }
  return out;
}

std::string calibration_json(const CalibrationOutcome& outcome) {
  using nlohmann::ordered_json;
  const auto number = [](double value) {
    return std::isinf(value) ? ordered_json(nullptr) : ordered_json(value);
  };
  ordered_json regions = ordered_json::array();
  ordered_json lifts = {{"all", outcome.expected.table()}};
  for (size_t i = 0; i < outcome.result.regions.size(); ++i) {
    const RegionResult& region = outcome.result.regions[i];
    if (!outcome.shown[i]) continue;
    ordered_json row = {{"region", outcome.header.regions[i]},
                        {"verdict", word(region.verdict)},
                        {"half_life_tokens", number(region.half_life)},
                        {"default", number(region.default_half_life)},
                        {"sessions", region.sessions},
                        {"observations", region.observations}};
    if (region.verdict == Verdict::kFitted) {
      row["measured"] = number(region.measured);
      row["low"] = number(region.interval.low);
      row["high"] = number(region.interval.high);
      row["fresh"] = region.fresh;
    }
    regions.push_back(std::move(row));
    if (region.sessions >= calibration::kLeastSessions) {
      lifts[outcome.header.regions[i]] = outcome.expected.table(i);
    }
  }
  const calibration::WatchCounts& counts = outcome.counts;
  const ordered_json all = {{"regions", std::move(regions)},
                            {"floor", outcome.result.floor},
                            {"expected_lift", std::move(lifts)},
                            {"channels", outcome.channels},
                            {"sessions", counts.sessions},
                            {"groups", outcome.result.groups},
                            {"counts",
                             {{"pages", counts.pages},
                              {"observations", counts.observations},
                              {"beyond_tolerance", counts.beyond},
                              {"without_mass", counts.no_mass},
                              {"unknown_pages", counts.unknown_pages},
                              {"lost_events", counts.lost},
                              {"ignored_fields", outcome.pass.ignored_fields},
                              {"ignored_events", outcome.pass.ignored_events},
                              {"absent_share", outcome.absence()}}}};
  return all.dump() + "\n";
}

}  // namespace memdecay::ctl
