// Trials and their score (see lives_trial.h).
#include "tests/support/lives_trial.h"

#include <algorithm>
#include <cmath>

#include "proto/contract/check.h"

namespace memdecay::testing {
namespace {

using calibration::PageLift;
using calibration::Seen;

constexpr double kAccess = 4;  // a lift that is an access

// The two wrong estimators.
class Naive {
 public:
  void add(const Seen& seen) {
    if (seen.kind != Seen::Queries::kDecode) return;
    if (seen.session != session_) pages_.clear();  // sessions follow each other
    session_ = seen.session;
    for (const PageLift& page : seen.pages) {
      Region& region = regions_[page.region];
      if (pages_.size() <= page.page) pages_.resize(page.page + size_t{1});
      Page& one = pages_[page.page];
      region.exposure += static_cast<double>(page.age - one.seen_at);
      one.seen_at = page.age;
      if (page.lift >= kAccess) {
        ++region.accesses;
        one.used_at = page.age;
      } else if (page.age - one.used_at > kQuiet && one.used_at > one.began_at) {
        region.lived += static_cast<double>(one.used_at - one.began_at);
        ++region.lives;
        one.began_at = one.used_at = page.age;
      }
    }
  }
  std::map<RegionId, double> access_rate() const {
    std::map<RegionId, double> out;
    for (const auto& [id, one] : regions_) out[id] = std::log(2) * one.exposure / one.accesses;
    return out;
  }
  std::map<RegionId, double> naive_mean() const {
    std::map<RegionId, double> out;
    for (const auto& [id, one] : regions_) out[id] = std::log(2) * one.lived / one.lives;
    return out;
  }

 private:
  struct Page {
    uint64_t seen_at = 0, used_at = 0, began_at = 0;  // ages
  };
  struct Region {
    double exposure = 0, accesses = 0, lived = 0, lives = 0;
  };
  uint64_t session_ = 0;
  std::vector<Page> pages_;
  std::map<RegionId, Region> regions_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool near(double half_life, double truth) {
  if (std::isinf(truth)) return half_life >= 1000;
  return std::abs(half_life - truth) <= 0.25 * truth;
}

}  // namespace

Trial run_trial(const LivesOptions& options, uint32_t draws) {
  calibration::Watch watch;
  calibration::Tally tally;
  Naive naive;
  MEMDECAY_CHECK(watch.begin(lives_header()).ok());
  simulate_lives(options, [&](const trace::Event& event) {
    MEMDECAY_CHECK(watch
                       .take(event,
                             [&](const Seen& seen) {
                               tally.add(seen);
                               naive.add(seen);
                             })
                       .ok());
  });
  calibration::Settings settings;
  settings.draws = draws;
  return {calibration::calibrate(tally, lives_header().regions.size(), settings),
          naive.access_rate(), naive.naive_mean()};
}

Score score_trials(LivesOptions options, uint32_t replications, uint32_t draws) {
  Score score;
  for (const auto& [region, truth] : options.half_lives) {
    score.regions.push_back({.region = region, .truth = truth});
  }
  std::sort(score.regions.begin(), score.regions.end(),
            [](const RegionScore& a, const RegionScore& b) { return a.truth > b.truth; });
  std::vector<std::vector<double>> ours(score.regions.size()), rates = ours, means = ours;
  const double share = 1.0 / replications;
  for (uint32_t i = 0; i < replications; ++i, ++options.seed) {
    const Trial trial = run_trial(options, draws);
    bool ordered = true;
    for (size_t k = 0; k < score.regions.size(); ++k) {
      RegionScore& region = score.regions[k];
      const calibration::RegionResult& found = trial.result.regions[region.region];
      const bool fitted = found.verdict == calibration::RegionResult::Verdict::kFitted;
      region.within += fitted && near(found.half_life, region.truth) ? share : 0;
      region.covered +=
          fitted && found.interval.low <= region.truth && region.truth <= found.interval.high
              ? share
              : 0;
      ours[k].push_back(found.half_life);
      rates[k].push_back(trial.access_rate.at(region.region));
      means[k].push_back(trial.naive_mean.at(region.region));
      ordered = ordered && (k == 0 || ours[k - 1].back() > ours[k].back());
    }
    score.in_order += ordered ? share : 0;
  }
  for (size_t k = 0; k < score.regions.size(); ++k) {
    RegionScore& region = score.regions[k];
    region.typical = median(ours[k]);
    region.access_rate = median(rates[k]);
    region.naive_mean = median(means[k]);
    score.covered += region.covered / static_cast<double>(score.regions.size());
  }
  return score;
}

}  // namespace memdecay::testing
