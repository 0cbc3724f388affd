// What scores and victims cost, on the policies alone (see sections.h).
//
// A pool of many pages in 64 sessions and the seven regions, one page in fifty mixed; every session
// has sealed, observed and refreshed. "Cold": every session has decoded a step since the last
// question, so no victim that was found before is of use. "From nothing": not even the bounds of
// blocks are known, every page is looked at. "One changed": one session has decoded a step and
// observed it. Beside them, in the same run and on as many pages, what is usual: a score with exp
// for every page, then a full sort.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/policy/policy.h"
#include "tests/bench/sections.h"

namespace memdecay::bench {
namespace {

using policy::PageMass;
using policy::Policy;

constexpr size_t kSessions = 64;
constexpr size_t kVictims = 256;
constexpr PageIndex kDensePages = 8192;
constexpr double kMillisecond = 1e6;  // in nanoseconds

class Pool {
 public:
  Pool(const std::string& name, size_t pages) {
    for (size_t session = 0; session < kSessions; ++session) {
      const size_t more = session < pages % kSessions ? 1 : 0;
      add_session(name, static_cast<PageIndex>(pages / kSessions + more));
    }
  }

  // Milliseconds of the question, after every session has decoded a step.
  double cold() {
    for (const auto& session : sessions_) touch(*session);
    return ask(sources_);
  }
  // The same, by copies that have never been asked.
  double from_nothing() {
    std::vector<std::unique_ptr<Policy>> copies;
    std::vector<Policy::Source> sources;
    for (const auto& session : sessions_) {
      copies.push_back(session->clone());
      sources.push_back({copies.back().get(), policy::Activity::kActive});
    }
    return ask(sources);
  }
  double one_changed() {
    ask(sources_);
    Policy& session = *sessions_[next_++ % kSessions];
    touch(session);
    observe(session, 64);
    return ask(sources_);
  }
  double bytes_per_page() const {
    size_t bytes = 0;
    size_t pages = 0;
    for (size_t i = 0; i < kSessions; ++i) {
      bytes += sessions_[i]->bytes();
      pages += pages_[i];
    }
    return static_cast<double>(bytes) / static_cast<double>(pages);
  }

 private:
  size_t pick(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(chance_); }

  void add_session(const std::string& name, PageIndex pages) {
    auto session = policy::make_policy({.name = name}).value();
    for (PageIndex page = 0; page < pages; ++page) {
      const auto region = static_cast<RegionId>(pick(kBuiltInRegions));
      session->on_step(policy::Step{page} * 16);
      if (page % 50 == 0) {
        session->on_seal(page, {{{region, 9}, {region_id(Region::kUser), 7}}});
      } else {
        session->on_seal(page, {{{region, 16}}});
      }
      if (page % (pages / 24 + 1) == 0) observe(*session, page / 8 + 1);
    }
    observe(*session, pages / 8 + 1);
    sources_.push_back({session.get(), policy::Activity::kActive});
    sessions_.push_back(std::move(session));
    pages_.push_back(pages);
  }

  // Nothing is left of what was kept, and the scores move where time moves them.
  void touch(Policy& session) {
    session.on_step(session.now() + 1);
    session.on_pin(0);
    session.on_unpin(0);
  }

  void observe(Policy& session, size_t listed) {
    std::vector<PageMass> masses;
    double sum = 0.3;
    PageIndex end = 0;
    while (session.sealed(end)) end += 1 + end / 4;  // roughly
    for (size_t i = 0; i < listed; ++i) {
      const auto page = static_cast<PageIndex>(pick(end));
      if (!session.sealed(page)) continue;
      masses.push_back({page, -std::log(1.0 - static_cast<double>(pick(1 << 20)) * 0x1p-20)});
      sum += masses.back().mass;
    }
    for (PageMass& mass : masses) mass.mass /= sum;
    session.on_observe(
        {.step = session.now() + 1, .sink = 0.1 / sum, .rest = 0.2 / sum, .masses = masses});
  }

  double ask(const std::vector<Policy::Source>& sources) {
    const Stopwatch watch;
    const auto picks = Policy::lowest_of(sources, kVictims, [](size_t, PageIndex) { return true; });
    const double took = watch.nanoseconds() / kMillisecond;
    if (!picks.empty()) last_ = picks.back().victim.score;
    return took;
  }

  std::mt19937_64 chance_{20260710};
  std::vector<std::unique_ptr<Policy>> sessions_;
  std::vector<Policy::Source> sources_;
  std::vector<PageIndex> pages_;
  size_t next_ = 0;
  volatile double last_ = 0;
};

// b exp(-lambda (t - tref)) + alpha a for every page, then all of them sorted.
class Usual {
 public:
  explicit Usual(size_t pages) : pages_(pages), order_(pages) {
    std::mt19937_64 chance(1);
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    for (Page& page : pages_) page = {unit(chance), 0.7 / (10 + 90 * unit(chance)), 0, 0};
    for (Page& page : pages_) {
      page.tref = 1000 * unit(chance);
      page.attention = unit(chance) / 1000;
    }
  }

  double milliseconds() {
    const Stopwatch watch;
    now_ += 1.0;
    for (size_t i = 0; i < pages_.size(); ++i) {
      const Page& page = pages_[i];
      order_[i] = {page.b * std::exp(-page.lambda * (now_ - page.tref)) + 0.5 * page.attention,
                   static_cast<uint32_t>(i)};
    }
    std::sort(order_.begin(), order_.end());
    return watch.nanoseconds() / kMillisecond;
  }

 private:
  struct Page {
    double b = 0;
    double lambda = 0;
    double tref = 0;
    double attention = 0;
  };

  std::vector<Page> pages_;
  std::vector<std::pair<double, uint32_t>> order_;
  double now_ = 1000;
};

// Milliseconds of one observation that lists every page.
double dense_observation(const std::string& name) {
  constexpr int kRounds = 40;
  auto session = policy::make_policy({.name = name}).value();
  std::vector<PageMass> masses;
  std::mt19937_64 chance(7);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  double sum = 0.0;
  for (PageIndex page = 0; page < kDensePages; ++page) {
    session->on_seal(page, {{{static_cast<RegionId>(1 + page / 64 % 6), 16}}});
    masses.push_back({page, std::exp(8 * unit(chance) * unit(chance))});
    sum += masses.back().mass;
  }
  for (PageMass& mass : masses) mass.mass /= sum;
  std::vector<double> samples;
  for (int round = 0; round < kRounds; ++round) {
    const Stopwatch watch;
    session->on_observe({.step = session->now() + 1, .masses = masses});
    samples.push_back(watch.nanoseconds() / kMillisecond);
  }
  return quantile(samples, 0.5);
}

std::string count_name(size_t pages) {
  if (pages >= 1'000'000) return absl::StrCat(pages / 1'000'000, "M");
  return absl::StrCat(pages / 1'000, "k");
}

Goal at_most(double value) { return {Goal::Side::kAtMost, value}; }

// The goals hold for a million pages.
void measure_goals(const BenchOptions& options, const std::string& name, Report& report) {
  const size_t pages = options.pick<size_t>(1'000'000, 20'000);
  report.section(absl::StrCat("policy ", name, ": ", count_name(pages), " pages, 7 regions, ",
                              kSessions, " sessions"));
  Pool pool(name, pages);
  Usual usual(pages);
  const std::vector<Way> ways = {
      {"256 victims in order, cold", [&] { return pool.cold(); }},
      {"the same, one session changed", [&] { return pool.one_changed(); }},
      {"the same, from nothing", [&] { return pool.from_nothing(); }},
      {"exp per page and a full sort", [&] { return usual.milliseconds(); }}};
  const auto figures = take_turns(options.pick(15, 2), ways);
  const std::optional<Goal> goals[] = {at_most(3), at_most(0.3), std::nullopt, std::nullopt};
  for (size_t way = 0; way < ways.size(); ++way) {
    report.add({.name = ways[way].name,
                .figure = spread_of(figures[way]),
                .unit = "ms",
                .goal = goals[way]});
  }
  report.add({.name = "cold, so much faster than that",
              .figure = spread_of(ratios(figures[3], figures[0])),
              .unit = "times",
              .goal = Goal{Goal::Side::kAtLeast, 30}});
  std::vector<double> dense;
  for (int round = 0; round < options.pick(5, 1); ++round) dense.push_back(dense_observation(name));
  report.add({.name = absl::StrCat("observation that lists ", kDensePages, " pages"),
              .figure = spread_of(dense),
              .unit = "ms",
              .goal = at_most(0.5)});
  report.add({.name = "memory of a page",
              .figure = spread_of({pool.bytes_per_page()}),
              .unit = "bytes",
              .goal = at_most(Policy::kBytesPerPage)});
}

void measure_sizes(const BenchOptions& options, const std::string& name, Report& report) {
  report.section(absl::StrCat("policy ", name, ": 256 victims by number of pages"));
  for (size_t pages = 10'000; pages <= options.pick<size_t>(10'000'000, 10'000); pages *= 10) {
    Pool pool(name, pages);
    const std::vector<Way> ways = {{"cold", [&] { return pool.cold(); }},
                                   {"one session changed", [&] { return pool.one_changed(); }}};
    const auto figures = take_turns(options.pick(9, 2), ways);
    for (size_t way = 0; way < ways.size(); ++way) {
      report.add({.name = absl::StrCat(count_name(pages), " pages, ", ways[way].name),
                  .figure = spread_of(figures[way]),
                  .unit = "ms"});
    }
  }
}

}  // namespace

absl::Status measure_policy(const BenchOptions& options, const std::vector<std::string>& names,
                            Report& report) {
  for (const std::string& name : names) {
    const absl::Status known = policy::make_policy({.name = name}).status();
    if (!known.ok()) return known;
  }
  for (const std::string& name : names) measure_goals(options, name, report);
  for (const std::string& name : names) measure_sizes(options, name, report);
  return absl::OkStatus();
}

}  // namespace memdecay::bench
