// The passes (see calibration.h).
#include "client/ctl/calibrate/calibration.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/policy/calibration/mix.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

using calibration::Seen;

constexpr uint64_t kLookedAt = 10'000;  // observations that tell which channels there are
constexpr size_t kNamed = 12;           // of a list in a message

// Observations by channel, at the start of the first file.
using Census = std::map<std::string, uint64_t>;

absl::StatusOr<Census> take_census(const CalibrationPlan& plan, const Interrupts& interrupts) {
  Census census;
  uint64_t seen = 0;
  // A file is left by an error of our own once it has told enough.
  const absl::Status enough = absl::OutOfRangeError("enough");
  const absl::StatusOr<PassCounts> passed =
      pass_over({plan.files.front()}, "looking for channels in", interrupts,
                {.begin = [](const trace::Header&) { return absl::OkStatus(); },
                 .take =
                     [&](const trace::Event& event) {
                       const auto* one = std::get_if<trace::Observed>(&event.what);
                       if (one == nullptr) return absl::OkStatus();
                       ++census[one->channel];
                       return ++seen < kLookedAt && census.size() < calibration::kMostChannels
                                  ? absl::OkStatus()
                                  : enough;
                     },
                 .end = [] { return absl::OkStatus(); }});
  if (!passed.ok() && passed.status() != enough) return passed.status();
  return census;
}

std::string some_of(const Census& census) {
  std::vector<std::string> names;
  for (const auto& [name, count] : census) {
    if (names.size() == kNamed) return absl::StrCat(absl::StrJoin(names, ", "), ", …");
    names.push_back(name.empty() ? "(unnamed)" : name);
  }
  return absl::StrJoin(names, ", ");
}

// What is looked at if nobody said: what the daemon was sent (no name), else what was observed most
// often.
std::string usual_channel(const Census& census) {
  if (census.contains("")) return "";
  return std::max_element(census.begin(), census.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

absl::StatusOr<std::vector<std::string>> channels_of(const CalibrationPlan& plan,
                                                     const Interrupts& interrupts) {
  const absl::StatusOr<Census> census = take_census(plan, interrupts);
  if (!census.ok()) return census.status();
  if (census->empty()) {
    return make_error(
        ErrorCode::kInvalidArgument, absl::StrCat("to calibrate on ", plan.files.front()),
        "there is no observation in it", "record while engines report attention (observe)");
  }
  if (plan.channels.empty()) return std::vector<std::string>{usual_channel(*census)};
  for (const std::string& channel : plan.channels) {
    if (census->contains(channel)) continue;
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("channel \"", channel, "\""),
                      absl::StrCat("the trace has ", some_of(*census)), "name one of those");
  }
  return plan.channels;
}

absl::Status mark_regions(const CalibrationPlan& plan, CalibrationOutcome& outcome) {
  const std::vector<std::string>& names = outcome.header.regions;
  outcome.shown.assign(names.size(), plan.regions.empty());
  for (const std::string& name : plan.regions) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return make_error(ErrorCode::kInvalidArgument, absl::StrCat("region \"", name, "\""),
                        absl::StrCat("the trace has ", absl::StrJoin(names, ", ")),
                        "name one of those");
    }
    outcome.shown[static_cast<size_t>(found - names.begin())] = true;
  }
  return absl::OkStatus();
}

absl::Status judge(const CalibrationPlan& plan, const CalibrationOutcome& outcome) {
  const calibration::WatchCounts& counts = outcome.counts;
  if (counts.observations == counts.beyond + counts.no_mass) {
    return make_error(ErrorCode::kInvalidArgument, "to calibrate on these traces",
                      absl::StrCat("of ", counts.observations, " observations ", counts.beyond,
                                   " do not sum to 1 and ", counts.no_mass,
                                   " have no mass on pages that can move"),
                      "record while engines report attention over pages that were sealed");
  }
  if (plan.evictions == CalibrationPlan::Evictions::kRefuse &&
      outcome.absence() > kTolerableAbsence) {
    return make_error(
        ErrorCode::kInvalidArgument, "to calibrate on these traces",
        absl::StrFormat("at %.1f %% of the looks a page had been evicted: pages leave because of "
                        "their scores, so those that stayed tell too much or too little",
                        outcome.absence() * 100),
        "record with whole caches (no budget), or accept the bias with --accept-evictions");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CalibrationOutcome> run_calibration(const CalibrationPlan& plan,
                                                   const Interrupts& interrupts) {
  auto channels = channels_of(plan, interrupts);
  if (!channels.ok()) return channels.status();
  CalibrationOutcome outcome;
  outcome.channels = *std::move(channels);
  calibration::Watch watch;
  calibration::Mix mix(outcome.channels);
  calibration::Tally tally;
  const auto use = [&](const Seen& seen) {
    tally.add(seen);
    outcome.expected.add(seen);
  };
  const auto follow = [&](const trace::Event& event) { return watch.take(event, use); };
  absl::StatusOr<PassCounts> passed =
      pass_over(plan.files, "reading", interrupts,
                {.begin =
                     [&](const trace::Header& header) {
                       outcome.header = header;
                       return watch.begin(header);
                     },
                 .take = [&](const trace::Event& event) { return mix.take(event, follow); },
                 .end = [&] { return mix.finish(follow); }});
  if (!passed.ok()) return passed.status();
  outcome.pass = *std::move(passed);
  outcome.counts = watch.counts();
  if (absl::Status marked = mark_regions(plan, outcome); !marked.ok()) return marked;
  if (absl::Status judged = judge(plan, outcome); !judged.ok()) return judged;
  calibration::Settings settings;
  settings.draws = plan.draws;
  outcome.result = calibration::calibrate(tally, outcome.header.regions.size(), settings);
  return outcome;
}

}  // namespace memdecay::ctl
