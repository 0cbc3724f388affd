// Means by distance (see expected.h).
#include "daemon/policy/calibration/expected.h"

#include <algorithm>
#include <bit>

namespace memdecay::calibration {
namespace {

constexpr double kPageTokens = 16;  // of kLeaning's pages
constexpr double kLeast = 0.001;    // what a policy takes
constexpr double kMost = 1000;

size_t bin_of(uint64_t distance) {
  const size_t bin = distance == 0 ? 0 : static_cast<size_t>(std::bit_width(distance) - 1);
  return std::min<size_t>(bin, policy::kDistanceBins - 1);
}

// Holes take the value of the bin before them, those at the start the first value there is.
void fill_holes(policy::DistanceTable& table) {
  const auto first = std::find_if(table.begin(), table.end(), [](double v) { return v > 0; });
  double last = first == table.end() ? 1.0 : *first;
  for (double& value : table) {
    if (value <= 0) value = last;
    last = value;
    value = std::clamp(value, kLeast, kMost);
  }
}

}  // namespace

void ExpectedLift::add(const Seen& seen) {
  const double queries = std::min(seen.queries, kHeaviest);
  for (const PageLift& page : seen.pages) {
    const double weight = queries * page.tokens;
    const size_t bin = bin_of(page.distance);
    for (Bins* bins : {&all_, page.region < kRegions ? &regions_[page.region] : nullptr}) {
      if (bins == nullptr) continue;
      (*bins)[bin].weight += weight;
      (*bins)[bin].lift += weight * page.lift;
      ++(*bins)[bin].views;
    }
  }
}

policy::DistanceTable ExpectedLift::table() const {
  policy::DistanceTable out{};
  for (size_t bin = 0; bin < out.size(); ++bin) out[bin] = all_[bin].mean();
  fill_holes(out);
  return out;
}

policy::DistanceTable ExpectedLift::table(size_t region) const {
  const policy::DistanceTable general = table();
  policy::DistanceTable out{};
  for (size_t bin = 0; bin < out.size(); ++bin) {
    const Bin& own = regions_[region][bin];
    const double leaning = kLeaning * kPageTokens;
    out[bin] = (own.lift + leaning * general[bin]) / (own.weight + leaning);
  }
  return out;
}

}  // namespace memdecay::calibration
