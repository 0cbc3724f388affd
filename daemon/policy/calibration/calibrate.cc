// Fit, bootstrap, shrinking (see calibrate.h).
#include "daemon/policy/calibration/calibrate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/base/random.h"
#include "daemon/policy/calibration/fit.h"
#include "proto/contract/check.h"

namespace memdecay::calibration {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNormal = 1.959964;    // its 97.5 % point
constexpr double kNoDecay = 1.0 / 1e5;  // a half-life beyond is told as infinite

double half_life_of(double rate) { return rate > kNoDecay ? 1 / rate : kInfinity; }

// Student's 97.5 % point over the normal's (Cornish and Fisher's expansion).
double widening(size_t groups) {
  const double freedom = static_cast<double>(groups) - 1;
  const double z2 = kNormal * kNormal;
  return 1 + (z2 + 1) / (4 * freedom) + (5 * z2 * z2 + 16 * z2 + 3) / (96 * freedom * freedom);
}

// By region of the fit: the drawn rates, ascending.
std::vector<std::vector<double>> draw_rates(absl::Span<const Group> groups, const Fitted& fitted,
                                            const Settings& settings) {
  std::vector<Slope> slopes;
  for (const Group& group : groups) {
    slopes.push_back(slope_of(group, fitted.unknowns, fitted.values));
  }
  base::Random random(settings.seed);
  std::vector<std::vector<double>> rates(fitted.unknowns.regions.size());
  for (uint32_t draw = 0; draw < settings.draws; ++draw) {
    Slope drawn{0, std::vector<double>(fitted.unknowns.size(), 0.0),
                Symmetric(fitted.unknowns.size())};
    for (size_t i = 0; i < slopes.size(); ++i) drawn.add(slopes[random.below(slopes.size())]);
    const std::vector<double> step = drawn.step(fitted.held, 0);
    for (size_t i = 0; i < rates.size(); ++i) {
      const size_t region = fitted.unknowns.regions[i];
      rates[i].push_back(fitted.rate(region) + step[fitted.unknowns.of_region[region] + 1]);
    }
  }
  for (std::vector<double>& one : rates) std::sort(one.begin(), one.end());
  return rates;
}

// The widened middle 95 % of the draws, as rates.
Interval interval_of(const std::vector<double>& drawn, double fitted, double widen) {
  const auto at = [&](double part) {
    return drawn[static_cast<size_t>(part * static_cast<double>(drawn.size() - 1) + 0.5)];
  };
  return {.low = fitted + (at(0.025) - fitted) * widen,
          .high = fitted + (at(0.975) - fitted) * widen};
}

// The rate between what was fitted and the default.
double shrunk(double fitted, const Interval& interval, double usual) {
  const double error = (interval.high - interval.low) / (2 * kNormal);
  const double prior = std::max(std::abs(fitted), usual);
  const double trust = prior * prior / (prior * prior + error * error);
  return usual + trust * (fitted - usual);
}

// Lift by age with distance and the blocks' levels taken out; also the floor.
void add_points(absl::Span<const Group> groups, const Fitted& fitted, Result& result) {
  std::vector<std::array<AgePoint, kBuckets>> points(kRegions);
  double lifts = 0, weights = 0;
  for (const Group& group : groups) {
    for_each_block(group, [&](absl::Span<const Cell> block) {
      double lift = 0, weight = 0;
      for (const Cell& cell : block) {
        lift += cell.lift;
        weight += fitted.weight(cell);
      }
      lifts += lift;
      weights += weight;
      for (const Cell& cell : block) {
        AgePoint& point = points[cell.region][cell.age];
        point.lift += cell.lift;
        point.age += cell.tokens;
        point.weight += cell.tokens * fitted.profile(cell.distance) * lift / weight;
      }
    });
  }
  result.floor = weights > 0 ? lifts / weights : 0;
  for (size_t region = 0; region < result.regions.size() && region < kRegions; ++region) {
    for (size_t age = 0; age < kBuckets; ++age) {
      const AgePoint& sum = points[region][age];
      if (sum.weight <= 0) continue;
      result.regions[region].by_age.push_back({.age = bucket_middle(age),
                                               .lift = result.floor * sum.lift / sum.weight,
                                               .weight = sum.age});
    }
  }
}

}  // namespace

Result calibrate(const Tally& tally, size_t regions, const Settings& settings) {
  MEMDECAY_CHECK(settings.draws >= kLeastDraws);
  const std::vector<Group> groups = tally.groups();
  Result result;
  result.regions.resize(regions);
  result.groups = groups.size();
  for (size_t i = 0; i < regions; ++i) {
    RegionResult& region = result.regions[i];
    region.default_half_life = i < settings.defaults.size() ? settings.defaults[i].half_life
                                                            : policy::RegionParameters{}.half_life;
    region.half_life = region.default_half_life;
    if (i >= kRegions) continue;
    region.observations = tally.views(i);
    for (const Group& group : groups) region.sessions += group.sessions_with[i];
    if (region.observations > 0) region.verdict = RegionResult::Verdict::kTooFewSessions;
  }
  for (const Group& group : groups) result.sessions += group.sessions;
  if (groups.size() < 2) return result;
  const Fitted fitted = fit(groups);
  result.fit =
      fitted.end == Fitted::End::kConverged ? Result::Fit::kConverged : Result::Fit::kNotConverged;
  add_points(groups, fitted, result);
  const std::vector<std::vector<double>> drawn = draw_rates(groups, fitted, settings);
  const double widen = widening(groups.size());
  for (size_t i = 0; i < drawn.size(); ++i) {
    const size_t number = fitted.unknowns.regions[i];
    if (number >= regions) continue;
    RegionResult& region = result.regions[number];
    if (region.sessions < kLeastSessions) continue;
    region.verdict = RegionResult::Verdict::kNoShape;
    if (result.fit != Result::Fit::kConverged || !fitted.inside(number)) continue;
    region.verdict = RegionResult::Verdict::kFitted;
    const double rate = fitted.rate(number);
    const Interval rates = interval_of(drawn[i], rate, widen);
    region.fresh = result.floor * std::exp(fitted.log_k(number));
    region.measured = half_life_of(rate);
    region.interval = {.low = half_life_of(rates.high), .high = half_life_of(rates.low)};
    region.half_life = half_life_of(shrunk(rate, rates, 1 / region.default_half_life));
  }
  return result;
}

}  // namespace memdecay::calibration
