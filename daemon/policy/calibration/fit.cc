// Newton steps with damping where one would overshoot (Levenberg and Marquardt; see fit.h).
#include "daemon/policy/calibration/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace memdecay::calibration {
namespace {

constexpr double kFirstRate = 1.0 / 50;
constexpr double kFirstLogK = 2.0;
// A floor below a hundredth of what is fresh cannot be told from none, a fresh page that gets a
// hundredth more than the floor not from a dead one.
constexpr double kMostLogK = 4.6;
constexpr double kMostRate = 2.0;  // half-lives below half a token are noise
// Where the likelihood is nearly flat steps could go on for ever: as many as this that together
// gain next to nothing end them.
constexpr int kPatience = 12;
constexpr double kGoodOfMany = 1e-6;
constexpr double kMostDamping = 1e6;
constexpr double kMostGrowth = 8.0;  // octaves that a rate below 0 may add over the ages seen
constexpr double kGood = 1e-10;      // relative gain that ends the fit

const double kLn2 = std::log(2.0);

// A cell at these values: its weight in the block, and the derivatives of the weight's logarithm.
struct Point {
  double weight = 0;
  size_t distance = 0, region = 0;  // indices of unknowns
  double by_log_k = 0, by_rate = 0;
};

Point point_of(const Cell& cell, const Unknowns& unknowns, const Values& values) {
  Point point;
  point.distance = unknowns.of_distance[cell.distance];
  point.region = unknowns.of_region[cell.region];
  const double age = bucket_middle(cell.age);
  const double fresh = std::exp(values[point.region]) * std::exp2(-values[point.region + 1] * age);
  point.weight = cell.tokens * std::exp(values[point.distance]) * (1 + fresh);
  const double part = fresh / (1 + fresh);
  point.by_log_k = part;
  point.by_rate = -kLn2 * age * part;
  return point;
}

void add_to(std::vector<double>& sum, const Point& point, double factor) {
  sum[point.distance] += factor;
  sum[point.region] += factor * point.by_log_k;
  sum[point.region + 1] += factor * point.by_rate;
}

void add_square(Symmetric& sum, const Point& point, double factor) {
  const size_t index[3] = {point.distance, point.region, point.region + 1};
  const double slope[3] = {1, point.by_log_k, point.by_rate};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j <= i; ++j) sum.add(index[i], index[j], factor * slope[i] * slope[j]);
  }
}

// A block's part of the slope. A block of one cell compares nothing.
void add_block(absl::Span<const Cell> block, const Unknowns& unknowns, const Values& values,
               std::vector<Point>& points, std::vector<double>& mean, Slope& slope) {
  points.clear();
  double weights = 0, lift = 0;
  for (const Cell& cell : block) {
    points.push_back(point_of(cell, unknowns, values));
    weights += points.back().weight;
    lift += cell.lift;
  }
  if (block.size() < 2 || lift <= 0) return;
  std::fill(mean.begin(), mean.end(), 0.0);
  for (size_t i = 0; i < block.size(); ++i) {
    const double expected = points[i].weight / weights;
    slope.likelihood += block[i].lift * std::log(expected / block[i].tokens);
    add_to(slope.gradient, points[i], block[i].lift - lift * expected);
    add_to(mean, points[i], expected);
    add_square(slope.curvature, points[i], lift * expected);
  }
  for (size_t i = 0; i < mean.size(); ++i) {
    if (mean[i] == 0) continue;
    for (size_t j = 0; j <= i; ++j) slope.curvature.add(i, j, -lift * mean[i] * mean[j]);
  }
}

// What stands at a bound and would go beyond.
std::vector<size_t> at_bounds(const Fitted& fitted, const std::vector<double>& gradient) {
  std::vector<size_t> held;
  const auto look = [&](size_t at, double low, double high) {
    if ((fitted.values[at] <= low && gradient[at] < 0) ||
        (fitted.values[at] >= high && gradient[at] > 0)) {
      held.push_back(at);
    }
  };
  for (const size_t region : fitted.unknowns.regions) {
    const size_t at = fitted.unknowns.of_region[region];
    look(at, -kMostLogK, kMostLogK);
    look(at + 1, fitted.least_rate, kMostRate);
  }
  return held;
}

Slope total_slope(absl::Span<const Group> groups, const Fitted& fitted) {
  Slope total{0, std::vector<double>(fitted.unknowns.size(), 0.0),
              Symmetric(fitted.unknowns.size())};
  for (const Group& group : groups) total.add(slope_of(group, fitted.unknowns, fitted.values));
  return total;
}

// One Newton step; none may leave what numbers can hold.
Values moved(const Fitted& from, const Slope& slope, double damping) {
  const std::vector<double> step = slope.step(from.held, damping);
  Values to = from.values;
  for (size_t i = 0; i < to.size(); ++i) to[i] += step[i];
  for (const size_t region : from.unknowns.regions) {
    const size_t at = from.unknowns.of_region[region];
    to[at] = std::clamp(to[at], -kMostLogK, kMostLogK);
    to[at + 1] = std::clamp(to[at + 1], from.least_rate, kMostRate);
  }
  return to;
}

// The profile's level cancels in every block; it is chosen so that its mean logarithm is 0.
void level_profile(absl::Span<const Group> groups, Fitted& fitted) {
  double sum = 0, tokens = 0;
  for (const Group& group : groups) {
    for (const Cell& cell : group.cells) {
      sum += cell.tokens * fitted.values[fitted.unknowns.of_distance[cell.distance]];
      tokens += cell.tokens;
    }
  }
  for (size_t i = 0; i < fitted.unknowns.distances.size(); ++i) fitted.values[i] -= sum / tokens;
}

}  // namespace

Unknowns unknowns_of(absl::Span<const Group> groups) {
  std::array<bool, kBuckets> distance{};
  std::array<bool, kRegions> region{};
  for (const Group& group : groups) {
    for (const Cell& cell : group.cells) distance[cell.distance] = region[cell.region] = true;
  }
  Unknowns unknowns;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (!distance[i]) continue;
    unknowns.of_distance[i] = unknowns.distances.size();
    unknowns.distances.push_back(i);
  }
  for (size_t i = 0; i < kRegions; ++i) {
    if (!region[i]) continue;
    unknowns.of_region[i] = unknowns.distances.size() + 2 * unknowns.regions.size();
    unknowns.regions.push_back(i);
  }
  return unknowns;
}

void Slope::add(const Slope& other) {
  likelihood += other.likelihood;
  curvature.add(other.curvature);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += other.gradient[i];
}

std::vector<double> Slope::step(absl::Span<const size_t> held, double damping) const {
  Symmetric matrix = curvature;
  std::vector<double> right = gradient;
  for (const size_t at : held) {
    matrix.clear(at);
    right[at] = 0.0;
  }
  return solve(std::move(matrix), std::move(right), damping);
}

Slope slope_of(const Group& group, const Unknowns& unknowns, const Values& values) {
  Slope slope{0, std::vector<double>(unknowns.size(), 0.0), Symmetric(unknowns.size())};
  std::vector<Point> points;
  std::vector<double> mean(unknowns.size());
  for_each_block(group, [&](absl::Span<const Cell> block) {
    add_block(block, unknowns, values, points, mean, slope);
  });
  return slope;
}

double Fitted::profile(size_t distance) const {
  return std::exp(values[unknowns.of_distance[distance]]);
}

double Fitted::weight(const Cell& cell) const { return point_of(cell, unknowns, values).weight; }

bool Fitted::inside(size_t region) const {
  return log_k(region) > -kMostLogK && rate(region) > least_rate && rate(region) < kMostRate;
}

Fitted fit(absl::Span<const Group> groups) {
  Fitted fitted;
  fitted.unknowns = unknowns_of(groups);
  fitted.values.assign(fitted.unknowns.size(), 0.0);
  size_t oldest = 0;
  for (const Group& group : groups) {
    for (const Cell& cell : group.cells) oldest = std::max<size_t>(oldest, cell.age);
  }
  fitted.least_rate = -kMostGrowth / std::max(1.0, bucket_middle(oldest));
  for (const size_t region : fitted.unknowns.regions) {
    fitted.values[fitted.unknowns.of_region[region]] = kFirstLogK;
    fitted.values[fitted.unknowns.of_region[region] + 1] = kFirstRate;
  }
  Slope slope = total_slope(groups, fitted);
  double damping = 1e-3;
  std::array<double, kPatience> before;  // likelihoods, a ring
  before.fill(-std::numeric_limits<double>::infinity());
  for (fitted.steps = 0; fitted.steps < kMostSteps; ++fitted.steps) {
    double& long_ago = before[static_cast<size_t>(fitted.steps % kPatience)];
    if (slope.likelihood - long_ago <= kGoodOfMany * std::abs(slope.likelihood)) {
      fitted.end = Fitted::End::kConverged;
      break;
    }
    long_ago = slope.likelihood;
    fitted.held = at_bounds(fitted, slope.gradient);
    Fitted next = fitted;
    next.values = moved(fitted, slope, damping);
    Slope there = total_slope(groups, next);
    const double gain = there.likelihood - slope.likelihood;
    if (gain < 0 && damping < kMostDamping) {
      damping *= 8;
      continue;
    }
    if (gain >= 0) {
      fitted.values = next.values;
      slope = std::move(there);
      damping /= 4;
    }
    if (gain <= kGood * std::abs(slope.likelihood)) {
      fitted.end = Fitted::End::kConverged;
      break;
    }
  }
  fitted.held = at_bounds(fitted, slope.gradient);
  level_profile(groups, fitted);
  return fitted;
}

}  // namespace memdecay::calibration
