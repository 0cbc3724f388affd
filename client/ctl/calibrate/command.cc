// The command (see command.h).
#include "client/ctl/calibrate/command.h"

#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "client/ctl/calibrate/report.h"
#include "client/ctl/json.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

constexpr int kNotWritten = 1;
constexpr int kNotTaken = 2;

int say_error(const CalibrateFlags& flags, const absl::Status& status) {
  std::cerr << "memdecayctl: " << std::string(status.message()) << "\n";
  if (flags.print == CalibrateFlags::Print::kJson) std::cout << to_json(status).dump() << "\n";
  const bool world = absl::IsCancelled(status) || error_code(status) == ErrorCode::kPermission;
  return world ? kNotWritten : kNotTaken;
}

absl::Status write(const std::string& path, const std::string& text) {
  if (path.empty()) return absl::OkStatus();
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (file) return absl::OkStatus();
  return make_error(ErrorCode::kPermission, absl::StrCat("file ", path), "it cannot be written",
                    "name a file in a folder that can");
}

}  // namespace

int run_calibrate(const CalibrateFlags& flags) {
  const Interrupts interrupts;
  const absl::StatusOr<CalibrationOutcome> outcome = run_calibration(flags.plan, interrupts);
  if (!outcome.ok()) return say_error(flags, outcome.status());
  std::cerr << calibration_notes(*outcome);
  absl::Status written = write(flags.out, calibration_yaml(*outcome));
  if (written.ok()) written = write(flags.svg, calibration_svg(*outcome));
  if (!written.ok()) return say_error(flags, written);
  std::cout << (flags.print == CalibrateFlags::Print::kJson ? calibration_json(*outcome)
                                                            : calibration_text(*outcome))
            << std::flush;
  return std::cout ? 0 : kNotWritten;
}

}  // namespace memdecay::ctl
