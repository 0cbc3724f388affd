// memdecayctl calibrate: half-lives and expected lift out of recorded traces; figures on stdout,
// notes and progress on stderr. Asks no daemon.
// Thread: main. Exit codes: 0 good, also where defaults are kept; 1 interrupted, or a file cannot
// be written; 2 a trace or the arguments are refused, in words that name file and line.
#pragma once

#include <string>

#include "client/ctl/calibrate/calibration.h"

namespace memdecay::ctl {

struct CalibrateFlags {
  CalibrationPlan plan;
  enum class Print : uint8_t { kText, kJson } print = Print::kText;
  std::string out;  // files to write; empty: none
  std::string svg;
};

int run_calibrate(const CalibrateFlags& flags);

}  // namespace memdecay::ctl
