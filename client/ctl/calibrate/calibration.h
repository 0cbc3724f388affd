// A calibration as the operator asked for it: a look at the first file for its channels, one pass
// over all files, the fit.
// Thread: main. Memory: what daemon/policy/calibration states; it does not grow with the files.
// Errors: those of pass.h; invalid_argument: channels that no trace has, regions that it does not
// name, no observations, too many evictions; others of calibration (watch.h).
// Not here: how it is shown (report.h), files that are written (command.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/calibrate/pass.h"
#include "daemon/policy/calibration/calibrate.h"

namespace memdecay::ctl {

// More evicted pages than this part of all makes the figures wrong: pages leave because of their
// scores, so those that stay are not a sample.
inline constexpr double kTolerableAbsence = 0.05;

struct CalibrationPlan {
  std::vector<std::string> files;
  std::vector<std::string> channels;  // empty: the usual one
  std::vector<std::string> regions;   // empty: all
  uint32_t draws = 1000;
  enum class Evictions : uint8_t { kRefuse, kAccept } evictions = Evictions::kRefuse;
};

struct CalibrationOutcome {
  trace::Header header;
  calibration::Result result;
  calibration::ExpectedLift expected;
  calibration::WatchCounts counts;
  PassCounts pass;
  std::vector<std::string> channels;  // that were looked at
  std::vector<bool> shown;            // by RegionId: asked for

  double absence() const {
    return counts.page_views == 0
               ? 0
               : static_cast<double>(counts.absent_views) / static_cast<double>(counts.page_views);
  }
};

absl::StatusOr<CalibrationOutcome> run_calibration(const CalibrationPlan& plan,
                                                   const Interrupts& interrupts);

}  // namespace memdecay::ctl
