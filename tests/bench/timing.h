// Time and statistics of a benchmark: a stopwatch, order statistics, and taking turns. On a shared
// machine the load changes from second to second: what is compared is measured in turn, round by
// round, and figures are medians of rounds.
// Thread: any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace memdecay::bench {

class Stopwatch {
 public:
  Stopwatch();
  double nanoseconds() const;  // since it was made

 private:
  int64_t start_;
};

// share 0.5: the median, 0.99: p99. 0 for no samples.
double quantile(std::vector<double> samples, double share);

struct Spread {
  double low = 0;
  double median = 0;
  double high = 0;
};
Spread spread_of(const std::vector<double>& rounds);

// One of the things that are compared: a round of it gives one figure.
struct Way {
  std::string name;
  std::function<double()> measure;
};
// Every way once a round, in an order that turns round each time, after one round that does not
// count. Result: [way][round].
std::vector<std::vector<double>> take_turns(int rounds, const std::vector<Way>& ways);

// Round by round figure / base.
std::vector<double> ratios(const std::vector<double>& figures, const std::vector<double>& bases);

}  // namespace memdecay::bench
