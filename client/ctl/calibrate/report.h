// A calibration for people (table and plots), for scripts (one line of JSON), as a policy file that
// memdecayd takes, and as a picture (SVG).
// Thread: pure functions. Not here: how it was found (calibration.h).
#pragma once

#include <string>

#include "client/ctl/calibrate/calibration.h"

namespace memdecay::ctl {

std::string calibration_text(const CalibrationOutcome& outcome);
// {"regions": [{"region", "verdict", "half_life_tokens", "measured", "low", "high", "fresh",
// "sessions", "observations", "default"}], "floor", "expected_lift": {"all": [...], REGION: [...]},
// "channels", "sessions", "groups", "counts": {...}}. A half-life of infinity is null; numbers that
// a region has not are left out. Ends with a newline.
std::string calibration_json(const CalibrationOutcome& outcome);
// Half-lives of the fitted regions that were asked for, and tables of expected lift.
std::string calibration_yaml(const CalibrationOutcome& outcome);
std::string calibration_svg(const CalibrationOutcome& outcome);

// What did not fit or was left out, a line each, for stderr; empty: nothing.
std::string calibration_notes(const CalibrationOutcome& outcome);

}  // namespace memdecay::ctl
