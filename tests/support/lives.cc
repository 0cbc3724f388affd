// Agents with mortal pages (see lives.h).
#include "tests/support/lives.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "proto/contract/vocabulary.h"

namespace memdecay::testing {
namespace {

constexpr uint32_t kPageTokens = 16;
constexpr double kSinkShare = 0.4;

struct Habit {
  double begins = 0.025;  // chance that a bout begins, a step
  double lasts = 6;       // steps of a bout, on average
  double strength = 20;   // of attention during a bout
};

struct Page {
  RegionId region = 0;
  uint64_t born = 0;  // step
  double dies = 0;    // step
  double gain = 1;    // this page's own, of its strength
  bool in_bout = false;
};

class Session {
 public:
  Session(const LivesOptions& options, uint64_t number, uint64_t from_ms,
          absl::FunctionRef<void(const trace::Event&)> emit)
      : options_(options), chance_(options.seed * 7919 + number), emit_(emit) {
    event_.session = number;
    event_.at_ms = from_ms;
  }

  // When it ended.
  uint64_t run() {
    say(trace::Opened{.tenant = 1, .mode = "lossy", .policy = "memdecay_n"});
    prefill(Region::kSystem, 6 + below(6));
    prefill(Region::kPlan, 2 + below(3));
    prefill(Region::kRetrieval, 3 + below(6));
    prefill(Region::kUser, 1 + below(3));
    while (step_ < options_.steps) turn();
    say(trace::Ended{});
    return event_.at_ms;
  }

 private:
  // What an agent does between two answers; the order is drawn.
  void turn() {
    switch (below(7)) {
      case 0:
        return prefill(Region::kUser, 1 + below(4));
      case 1:
        return decode(Region::kPlan, 1 + below(3));
      case 2:
        return prefill(Region::kRetrieval, 2 + below(5));
      case 3:
      case 4:
        decode(Region::kScratchpad, 1);
        return prefill(Region::kToolOut, 1 + below(6));
      default:
        return decode(Region::kScratchpad, 1 + below(5));
    }
  }

  void prefill(Region region, uint32_t pages) {
    if (!options_.half_lives.contains(region_id(region))) return;
    for (uint32_t i = 0; i < pages; ++i) {
      position_ += kPageTokens;
      seal(region);
    }
    if (!pages_.empty()) observe(pages * kPageTokens);
  }

  void decode(Region region, uint32_t pages) {
    if (!options_.half_lives.contains(region_id(region))) return;
    for (uint32_t token = 0; token < pages * kPageTokens && step_ < options_.steps; ++token) {
      ++step_;
      ++position_;
      live();
      if ((step_ + event_.session) % options_.every == 0) {
        observe(1);
      } else {
        say(trace::Stepped{.step = step_});
      }
      if (position_ % kPageTokens == 0) seal(region);
    }
    // A span ends with a whole page, also the last one of a session.
    position_ = (position_ + kPageTokens - 1) / kPageTokens * kPageTokens;
    while (pages_.size() < position_ / kPageTokens) seal(region);
  }

  void seal(Region region) {
    Page page;
    page.region = region_id(region);
    page.born = step_;
    const double half_life = options_.half_lives.at(page.region);
    const double life =
        std::isinf(half_life)
            ? std::numeric_limits<double>::infinity()
            : std::exponential_distribution<double>(std::log(2) / half_life)(chance_);
    page.dies = static_cast<double>(step_) + life;
    page.gain = std::lognormal_distribution<double>(0.0, 0.4)(chance_);
    const Habit habit;
    page.in_bout = chance(habit.begins * habit.lasts / (1 + habit.begins * habit.lasts));
    trace::Sealed sealed;
    sealed.page = static_cast<PageIndex>(pages_.size());
    sealed.tokens = kPageTokens;
    sealed.runs = {{.region = page.region, .tokens = kPageTokens}};
    pages_.push_back(page);
    say(sealed);
  }

  // Bouts begin and end, seen or not.
  void live() {
    const Habit habit;
    for (Page& page : pages_)
      page.in_bout = chance(page.in_bout ? 1 - 1 / habit.lasts : habit.begins);
  }

  void observe(uint32_t queries) {
    const Habit habit;
    trace::Observed seen;
    seen.step = step_;
    seen.query_position = position_;
    seen.queries = queries;
    seen.sink = kSinkShare;
    std::lognormal_distribution<double> noise(-0.18, 0.6);  // mean 1
    double total = 0;
    for (size_t i = 0; i < pages_.size(); ++i) {
      const Page& page = pages_[i];
      const bool alive = static_cast<double>(step_) < page.dies;
      double attention = options_.floor * noise(chance_);
      if (alive && page.in_bout) attention += habit.strength * page.gain * noise(chance_);
      const uint64_t last = (i + 1) * kPageTokens - 1;
      attention *= profile(static_cast<double>(position_ - last));
      seen.masses.push_back({.page = static_cast<PageIndex>(i), .mass = attention});
      total += attention;
    }
    const double unsealed = static_cast<double>(position_ % kPageTokens) / kPageTokens;
    const double tail = 2.5 * unsealed * profile(4);
    const double scale = (1 - kSinkShare) / (total + tail);
    seen.tail = tail * scale;
    for (trace::PageMass& mass : seen.masses) mass.mass *= scale;
    say(std::move(seen));
  }

  double profile(double distance) const {
    return 1 + options_.near * 15 / (1 + std::pow(distance / 40, 1.5));
  }
  uint32_t below(uint32_t bound) {
    return std::uniform_int_distribution<uint32_t>(0, bound - 1)(chance_);
  }
  bool chance(double probability) { return std::bernoulli_distribution(probability)(chance_); }
  void say(trace::What what) {
    event_.at_ms += 10;
    event_.what = std::move(what);
    emit_(event_);
  }

  const LivesOptions& options_;
  std::mt19937_64 chance_;
  absl::FunctionRef<void(const trace::Event&)> emit_;
  trace::Event event_;
  std::vector<Page> pages_;
  uint64_t step_ = 0;
  uint64_t position_ = 0;
};

}  // namespace

std::map<RegionId, double> true_half_lives() {
  return {{region_id(Region::kSystem), std::numeric_limits<double>::infinity()},
          {region_id(Region::kPlan), 200},
          {region_id(Region::kRetrieval), 80},
          {region_id(Region::kUser), 60},
          {region_id(Region::kToolOut), 40},
          {region_id(Region::kScratchpad), 14}};
}

trace::Header lives_header() {
  trace::Header header;
  for (RegionId region = 0; region < kBuiltInRegions; ++region) {
    header.regions.emplace_back(region_name(region));
  }
  return header;
}

void simulate_lives(const LivesOptions& options,
                    absl::FunctionRef<void(const trace::Event&)> emit) {
  uint64_t now_ms = 0;
  for (uint32_t number = 1; number <= options.sessions; ++number) {
    now_ms = Session(options, number, now_ms, emit).run();
  }
}

}  // namespace memdecay::testing
