// Property: over random histories every policy scores like the slow formulas (1e-9) and names the
// same victims in the same order. MEMDECAY_PROPERTY_EVENTS sets the number of events per policy
// (default 20,000). Each history has its own seed, which a failure prints.
// Thread: one. Not here: the rules one by one (test_rules.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "daemon/policy/policy.h"
#include "tests/support/slow_policy.h"
#include "tests/unit/daemon/policy/random_options.h"

namespace memdecay::policy {
namespace {

using test::SlowConfig;
using test::SlowObservation;
using test::SlowPolicy;
using test::SlowVictim;

constexpr int kEventsPerHistory = 400;
constexpr int kMostPages = 120;

class Twins {
 public:
  Twins(std::string form, uint64_t seed) : chance_(seed), slow_(SlowConfig{}) {
    PolicyOptions options{.name = form};
    options.sinks = pick(3) == 0 ? 0U : (pick(3) == 0 ? 20U : 4U);
    options.recent = static_cast<uint32_t>(pick(4));
    options.pinned = {region_id(Region::kSystem)};
    if (pick(3) == 0) options.pinned->push_back(region_id(Region::kPlan));
    if (form == "truncation") options.sinks = 0;
    SlowConfig config{.form = form};
    config.sinks = static_cast<int>(options.sinks);
    config.recent = static_cast<int>(options.recent);
    if (form == "random") options.seed = static_cast<double>(config.seed = seed);
    if (form == "snapkv") options.window_queries = config.window = 1 + pick(32);
    if (form.starts_with("memdecay")) {
      options.regions = default_regions();
      options.regions.push_back({.b = 2.5, .half_life = 5.0});
      options.regions.push_back({.b = 0.01, .half_life = 1e4});
      if (pick(3) == 0) options.regions.push_back({.b = 0.6, .half_life = 0.1});
    }
    learns_ = form.starts_with("memdecay");
    regions_ = options.regions.empty() ? 7 : static_cast<int>(options.regions.size());
    const bool timed = form == "memdecay" || form == "memdecay_n";
    if (timed && pick(2) == 0) choose_practice(chance_, options, config);
    for (const RegionParameters& region : options.regions) {
      config.regions.push_back({region.b, region.half_life, static_cast<int>(region.clock),
                                region.doubling, region.turn_decay,
                                region.held == Held::kUntilEnded});
    }
    for (RegionId region : *options.pinned) config.pinned.insert(region);
    if (form == "memdecay_n") choose_constants(chance_, options, config);
    fast_ = make_policy(options).value();
    slow_ = SlowPolicy(config);
  }

  void random_event();
  void compare();
  bool hangs_on_rounding() const { return slow_.hangs_on_rounding(); }

 private:
  int pick(int below) { return chance_.pick(below); }
  double unit() { return chance_.unit(); }
  void step();
  void learn();
  void seal();
  void observe();
  void evict();
  void change_page(int page);
  std::vector<std::pair<int, int>> random_runs();
  void compare_order(const std::vector<SlowVictim>& expected);
  static std::vector<RegionRun> to_fast(const std::vector<std::pair<int, int>>& runs);

  Chance chance_;
  std::unique_ptr<Policy> fast_;
  SlowPolicy slow_;
  int regions_ = 7;
  double now_ = 0;
  double seconds_ = 0;
  bool learns_ = false;
};

std::vector<std::pair<int, int>> Twins::random_runs() {
  std::vector<std::pair<int, int>> runs;
  int left = pick(20) == 0 ? 1 + pick(16) : 16;
  const int common = pick(regions_);
  while (left > 0) {
    const int count = pick(3) == 0 ? 1 + pick(left) : left;
    runs.push_back({pick(2) == 0 ? common : pick(regions_), count});
    left -= count;
  }
  return runs;
}

std::vector<RegionRun> Twins::to_fast(const std::vector<std::pair<int, int>>& runs) {
  std::vector<RegionRun> result;
  for (const auto& [region, count] : runs) {
    result.push_back(
        {.region = static_cast<RegionId>(region), .tokens = static_cast<uint16_t>(count)});
  }
  return result;
}

void Twins::step() {
  // A generated token or a few; a pause of an hour, of a month, of years.
  const int dice = pick(60);
  now_ += dice == 0 ? pick(100000) : dice == 1 ? 1e7 * (1 + pick(300)) : pick(12);
  fast_->on_step(static_cast<Step>(now_));
  slow_.step(now_);
  if (pick(4) == 0) {
    seconds_ += dice == 2 ? 86400.0 * pick(1000) : 20 * unit();
    fast_->on_seconds(seconds_);
    slow_.seconds(seconds_);
  }
  if (pick(12) == 0) {
    fast_->on_turn();
    slow_.turn();
  }
}

// As calibration tells it while sessions live.
void Twins::learn() {
  const int region = pick(regions_);
  const double half_life = std::exp2(12 * unit() - 3);
  fast_->set_half_life(static_cast<RegionId>(region), half_life);
  slow_.set_half_life(region, half_life);
}

void Twins::seal() {
  if (slow_.end() >= kMostPages) return;
  int page = slow_.end();
  for (int count = 1 + pick(3); count > 0; --count) {
    page += pick(25) == 0 ? 1 : 0;  // out of order: one stays open
    const std::vector<std::pair<int, int>> runs = random_runs();
    fast_->on_seal(static_cast<PageIndex>(page), to_fast(runs));
    slow_.seal(page, runs);
    ++page;
  }
}

void Twins::observe() {
  step();
  SlowObservation seen;
  seen.step = now_;
  seen.queries = pick(8) == 0 ? pick(300) : 1 + pick(16);
  seen.position = pick(8) == 0 ? 0 : slow_.end() * 16 + pick(40);
  const double density = pick(4) == 0 ? 0.0 : unit();
  std::vector<std::pair<int, double>> weights;
  double sum = 0;
  const auto add = [&](int page) {
    const double weight = std::exp(4 * unit() * unit() * unit() * 2);
    sum += weight;
    weights.push_back({page, weight});
  };
  for (int page : slow_.sealed_pages()) {
    if (slow_.resident(page) && unit() < density) add(page);
  }
  for (int other = -1; other >= -3; --other) add(other);  // sink, tail, rest
  if (pick(10) == 0) weights[weights.size() - 3].second *= 1e9;
  sum = 0;
  for (const auto& [page, weight] : weights) sum += weight;
  std::vector<PageMass> masses;
  for (const auto& [page, weight] : weights) {
    const double mass = weight / sum;
    if (page == -1) seen.sink = mass;
    if (page == -2) seen.tail = mass;
    if (page == -3) seen.rest = mass;
    if (page < 0) continue;
    seen.masses[page] = mass;
    masses.push_back({.page = static_cast<PageIndex>(page), .mass = mass});
  }
  std::shuffle(masses.begin(), masses.end(), chance_.engine());
  fast_->on_observe({.step = static_cast<Step>(now_),
                     .query_position = static_cast<uint64_t>(seen.position),
                     .queries = static_cast<uint32_t>(seen.queries),
                     .sink = seen.sink,
                     .tail = seen.tail,
                     .rest = seen.rest,
                     .masses = masses});
  slow_.observe(seen);
}

void Twins::evict() {
  const auto eligible = [&](PageIndex) { return pick(4) != 0; };
  const Activity activity = pick(6) == 0 ? Activity::kIdle : Activity::kActive;
  for (const Victim& victim : fast_->lowest(static_cast<size_t>(pick(6)), activity, eligible)) {
    fast_->on_evicted(victim.page);
    slow_.evict(static_cast<int>(victim.page));
  }
}

void Twins::change_page(int page) {
  const PageIndex index = static_cast<PageIndex>(page);
  switch (pick(8)) {
    case 0: {
      size_t tokens = 0;
      const std::vector<std::pair<int, int>> runs = random_runs();
      for (const auto& [region, count] : runs) tokens += static_cast<size_t>(count);
      if (tokens != fast_->tokens(index)) return;
      fast_->on_retag(index, to_fast(runs));
      slow_.retag(page, runs);
      return;
    }
    case 1:
      fast_->on_pin(index);
      slow_.pin(page);
      return;
    case 2:
      fast_->on_unpin(index);
      slow_.unpin(page);
      return;
    case 3:
      fast_->on_soften(index);
      slow_.soften(page);
      return;
    case 4:
      fast_->on_harden(index);
      slow_.harden(page);
      return;
    case 5: {
      const double relevance = unit();
      fast_->on_hint(index, relevance);
      slow_.hint(page, relevance);
      return;
    }
    case 6:
      fast_->on_supersede(index);
      slow_.supersede(page);
      return;
    default:
      fast_->on_end_group(index, index + 2, page % 2 == 0 ? GroupEnd::kCut : GroupEnd::kDecay);
      page % 2 == 0 ? slow_.end_group_and_cut(page, page + 2) : slow_.end_group(page, page + 2);
  }
}

void Twins::random_event() {
  const std::vector<int> pages = slow_.sealed_pages();
  const int dice = pick(100);
  if (dice < 15 || pages.empty()) return seal();
  const int page = pages[static_cast<size_t>(pick(static_cast<int>(pages.size())))];
  if (dice < 45) return observe();
  if (dice < 55) return step();
  if (dice < 70) return evict();
  if (dice < 80) {
    if (slow_.resident(page)) return;
    fast_->on_restored(static_cast<PageIndex>(page));
    return slow_.restore(page);
  }
  if (dice < 97) return change_page(page);
  if (dice < 98 && learns_ && pick(2) == 0) return learn();
  if (dice < 98) {
    const int first = std::max(0, slow_.end() - pick(12));
    fast_->on_truncate(static_cast<PageIndex>(first));
    return slow_.truncate(first);
  }
  fast_ = fast_->clone();  // a fork goes on alike
}

void Twins::compare_order(const std::vector<SlowVictim>& expected) {
  const std::vector<Victim> victims =
      fast_->lowest(expected.size() + 1, Activity::kActive, [](PageIndex) { return true; });
  ASSERT_EQ(victims.size(), expected.size());
  for (size_t i = 0; i < victims.size(); ++i) {
    if (static_cast<int>(victims[i].page) == expected[i].page) continue;
    // Only rounding may swap two: their true scores are equal.
    const double here = slow_.score(static_cast<int>(victims[i].page));
    ASSERT_NEAR(here, expected[i].score, 1e-12 * std::max(1.0, std::abs(here)))
        << "rank " << i << ": page " << victims[i].page << " instead of " << expected[i].page;
  }
}

void Twins::compare() {
  for (int page : slow_.sealed_pages()) {
    const PageIndex index = static_cast<PageIndex>(page);
    const double expected = slow_.score(page);
    const double actual = fast_->score(index);
    ASSERT_NEAR(actual, expected, 1e-9 * std::abs(expected) + 1e-13) << "page " << page;
    double sum = 0.0;
    for (const Term& term : fast_->explain(index)) sum += term.value;
    ASSERT_NEAR(sum, actual, 1e-12 * std::max(1.0, std::abs(actual))) << "page " << page;
    ASSERT_EQ(fast_->resident(index), slow_.resident(page));
  }
  compare_order(slow_.order());
}

class RandomHistories : public testing::TestWithParam<const char*> {};

TEST_P(RandomHistories, scores_and_victims_equal_the_slow_formulas) {
  const char* wanted = std::getenv("MEMDECAY_PROPERTY_EVENTS");
  const int events = wanted != nullptr ? std::atoi(wanted) : 20000;
  double compared_events = 0;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(events / kEventsPerHistory); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Twins twins(GetParam(), seed);
    for (int event = 0; event < kEventsPerHistory; ++event) {
      twins.random_event();
      if (twins.hangs_on_rounding()) break;
      compared_events += 1;
      if (event % 4 == 0) twins.compare();
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(compared_events, 0.95 * events);
}

INSTANTIATE_TEST_SUITE_P(Policies, RandomHistories,
                         testing::Values("h2o", "lru", "memdecay", "memdecay_n", "memdecay_n0",
                                         "norm_sum", "random", "snapkv", "streaming", "tova",
                                         "truncation"),
                         [](const auto& form) { return std::string(form.param); });

}  // namespace
}  // namespace memdecay::policy
