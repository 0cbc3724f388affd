// See timing.h.
#include "tests/bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace memdecay::bench {
namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Stopwatch::Stopwatch() : start_(now()) {}

double Stopwatch::nanoseconds() const { return static_cast<double>(now() - start_); }

double quantile(std::vector<double> samples, double share) {
  if (samples.empty()) return 0;
  const double last = static_cast<double>(samples.size() - 1);
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(share * last + 0.5);
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

Spread spread_of(const std::vector<double>& rounds) {
  return {quantile(rounds, 0), quantile(rounds, 0.5), quantile(rounds, 1)};
}

std::vector<std::vector<double>> take_turns(int rounds, const std::vector<Way>& ways) {
  std::vector<std::vector<double>> figures(ways.size());
  for (int round = -1; round < rounds; ++round) {
    for (size_t turn = 0; turn < ways.size(); ++turn) {
      const size_t way = round % 2 == 0 ? turn : ways.size() - 1 - turn;
      const double figure = ways[way].measure();
      if (round >= 0) figures[way].push_back(figure);
    }
  }
  return figures;
}

std::vector<double> ratios(const std::vector<double>& figures, const std::vector<double>& bases) {
  std::vector<double> out;
  for (size_t i = 0; i < figures.size() && i < bases.size(); ++i) {
    out.push_back(bases[i] == 0 ? 0 : figures[i] / bases[i]);
  }
  return out;
}

}  // namespace memdecay::bench
