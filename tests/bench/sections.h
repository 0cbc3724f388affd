// The parts of `memdecay-bench host`, and `memdecay-bench policy`, each measured for itself and
// added to the report as a section; and `memdecay-bench calibration`. Thread: one at a time. Not
// here: how figures are shown (report.h), which parts run (main.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/bench/report.h"

namespace memdecay::bench {

struct BenchOptions {
  enum class Size : uint8_t { kWhole, kQuick } size = Size::kWhole;
  std::string programs;  // folder of memdecayd, memdecay-engine and memdecay-bench
  std::string model;     // GGUF file
  int threads = 2;       // of the engine

  // Quick runs only show that everything works.
  template <typename T>
  T pick(T whole, T quick) const {
    return size == Size::kWhole ? whole : quick;
  }
};

// Copies: plain, with the checksum in the same pass, into the host tier and back.
absl::Status measure_memory(const BenchOptions& options, Report& report);
// Steps of the ledger alone: grants, seals, pressure.
absl::Status measure_ledger(const BenchOptions& options, Report& report);
// A call over the engine's stream to a real daemon and back, beside a bare gRPC echo.
absl::Status measure_stream(const BenchOptions& options, Report& report);
// Decode steps of the reference engine with private memory and on a daemon's pages.
absl::Status measure_engine(const BenchOptions& options, Report& report);

// Scores and victims of the named policies, up to millions of pages. invalid_argument for a name
// that no policy has.
absl::Status measure_policy(const BenchOptions& options, const std::vector<std::string>& names,
                            Report& report);

// Half-lives of simulated agents as calibration finds them, beside the truth: the table. Its
// figures are shares of replications, not times.
std::string calibration_table(const BenchOptions& options, uint32_t replications);

}  // namespace memdecay::bench
