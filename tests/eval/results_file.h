// Result lines that are there, and new ones behind them.
//
// Why: an evaluation takes hours and is interrupted; what stands in its file is not done again.
// Thread: one.
// Invariant: a run's lines for one recording are all there or none: the last ones of a file that
// was found may not be all, so they are cut off when it is opened.
// Not here: what a line says (replay.h, validate.cc, running.cc).
#pragma once

#include <cstdint>
#include <fstream>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/eval/plan.h"

namespace memdecay::eval {

class ResultsFile {
 public:
  // invalid_argument: it holds other lines, or cannot be written.
  static absl::StatusOr<ResultsFile> open(const std::string& path, const std::string& set);

  const std::string& set() const { return set_; }
  bool holds(const PlannedRun& run, uint64_t seed) const;
  // All lines of one run and recording, in one write.
  absl::Status add(const std::string& lines);

 private:
  absl::Status read(const std::string& path);

  std::string set_;
  std::set<std::string> done_;
  std::ofstream file_;
};

}  // namespace memdecay::eval
