// What the ledger's decisions cost, without sockets and copies (see sections.h).
//
// Pressure finds a full pool: one slot has to be freed, so a page is chosen. "By score": all pages
// belong to running lossy sessions, whose policy chooses; "unreferenced": to closed sessions, the
// oldest goes. After each sample the page leaves and another takes its place.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/ledger_world.h"
#include "tests/bench/sections.h"

namespace memdecay::bench {
namespace {

constexpr uint32_t kSessions = 64;
constexpr uint32_t kSlabPages = 64;

ledger::Options options_of(uint32_t pages) {
  ledger::Options options;
  options.device_pages = pages;
  options.slab_pages = kSlabPages;
  options.host_pages = 1024;
  options.orphan_limit = 1u << 16;
  return options;
}

enum class Held : uint8_t { kByRunningSessions, kByNobody };

class FullPool {
 public:
  FullPool(uint32_t pages, Held held) : held_(held), world_(options_of(pages)) {
    const uint32_t each = pages / kSessions;
    const Mode mode = held == Held::kByRunningSessions ? Mode::kLossy : Mode::kExact;
    for (uint32_t i = 0; i < kSessions; ++i) {
      const uint32_t more = i == 0 ? pages - each * kSessions : 0;
      sessions_.push_back(world_.open(absl::StrCat("s", i), mode, each + more));
      if (held == Held::kByRunningSessions) {
        world_.observe(sessions_.back(), each + more);
      } else {
        close(sessions_.back());
      }
    }
  }

  // Nanoseconds of the step that chooses.
  double pressure() {
    const double took = world_.step(ledger::Pressure{.origin = world_.origin(), .pages = 1});
    world_.settle();
    const uint32_t next = refills_++;
    if (held_ == Held::kByRunningSessions) {
      world_.grow(sessions_[next % kSessions], 1);
    } else {
      close(world_.open(absl::StrCat("r", next), Mode::kExact, 1));
    }
    return took;
  }

 private:
  void close(SessionId session) {
    world_.call(ledger::CloseSession{.origin = world_.origin(), .session = session});
  }

  const Held held_;
  LedgerWorld world_;
  std::vector<SessionId> sessions_;
  uint32_t refills_ = 0;
};

void measure_pressure(const BenchOptions& options, Held held, Report& report) {
  const std::vector<uint32_t> sizes = {options.pick(10'000u, 1'000u),
                                       options.pick(100'000u, 4'000u)};
  const char* const what = held == Held::kByNobody ? "unreferenced" : "by score";
  std::vector<std::unique_ptr<FullPool>> pools;
  for (const uint32_t pages : sizes) pools.push_back(std::make_unique<FullPool>(pages, held));
  std::vector<std::vector<double>> samples(sizes.size());
  const int count = options.pick(400, 20);
  for (int i = 0; i < count; ++i) {
    for (size_t pool = 0; pool < pools.size(); ++pool) {
      samples[pool].push_back(pools[pool]->pressure() / 1000);
    }
  }
  for (size_t pool = 0; pool < pools.size(); ++pool) {
    for (const auto& [name, share] : {std::pair("p50", 0.5), std::pair("p99", 0.99)}) {
      const double figure = quantile(samples[pool], share);
      report.add({.name = absl::StrCat("pressure 1, ", sizes[pool], " pages ", what, ", ", name),
                  .figure = {quantile(samples[pool], 0), figure, quantile(samples[pool], 1)},
                  .unit = "us"});
    }
  }
}

// Grants and frees of one page: the median pair of a thousand.
double grant_and_free(LedgerWorld& world, SessionId session) {
  constexpr int kPairs = 1000;
  std::vector<double> samples;
  for (int i = 0; i < kPairs; ++i) {
    const ledger::Event extend =
        ledger::Extend{.origin = world.origin(), .session = session, .pages = 1};
    const ledger::Event truncate =
        ledger::Truncate{.origin = world.origin(), .session = session, .tokens = 16};
    samples.push_back(world.step(extend) + world.step(truncate));
    world.settle();
  }
  return quantile(samples, 0.5);
}

// Seals of one page each on a session that grows, then is cut again: the median one.
double seal_one(LedgerWorld& world, SessionId session) {
  constexpr int kSeals = 200;
  std::vector<double> samples;
  for (uint32_t i = 0; i < kSeals; ++i) {
    world.call(ledger::Extend{.origin = world.origin(), .session = session, .pages = 1});
    samples.push_back(world.step(world.seal(session, 1 + i, 1)));
    world.settle();
  }
  world.call(ledger::Truncate{.origin = world.origin(), .session = session, .tokens = 16});
  return quantile(samples, 0.5);
}

// Ends of sessions of 64 pages, which become entries: the median, a page.
double close_a_page() {
  constexpr int kCloses = 20;
  constexpr uint32_t kPages = 64;
  LedgerWorld world(options_of(4096));
  std::vector<double> samples;
  for (int i = 0; i < kCloses; ++i) {
    const SessionId session = world.open(absl::StrCat("c", i), Mode::kExact, kPages);
    samples.push_back(
        world.step(ledger::CloseSession{.origin = world.origin(), .session = session}) / kPages);
    world.settle();
  }
  return quantile(samples, 0.5);
}

// Observations of a session: the median one. Masses on every page.
double observe_all(LedgerWorld& world, SessionId session, uint32_t pages) {
  constexpr int kObservations = 100;
  std::vector<double> samples;
  for (int i = 0; i < kObservations; ++i) {
    samples.push_back(world.step(world.observation(session, pages)));
    world.settle();
  }
  return quantile(samples, 0.5);
}

// The same with a recording, side by side.
void measure_recording(const BenchOptions& options, Report& report) {
  constexpr uint32_t kPages = 1024;
  LedgerWorld world(options_of(4096));
  const SessionId grows = world.open("grows", Mode::kExact, 1);
  const SessionId seen = world.open("seen", Mode::kLossy, kPages);
  const std::vector<Way> alone = {
      {"grant + free of a page", [&] { return grant_and_free(world, grows); }},
      {"seal of a page", [&] { return seal_one(world, grows); }},
      {"observation of 1,024 pages", [&] { return observe_all(world, seen, kPages); }}};
  std::vector<Way> ways;
  for (const Way& way : alone) {
    ways.push_back({way.name + ", alone", way.measure});
    ways.push_back({way.name + ", recorded", [&world, measure = way.measure] {
                      world.record();
                      const double figure = measure();
                      world.stop_recording();
                      return figure;
                    }});
  }
  const auto figures = take_turns(options.pick(15, 3), ways);
  for (size_t way = 0; way < ways.size(); ++way) {
    Row row{.name = ways[way].name, .figure = spread_of(figures[way]), .unit = "ns"};
    if (way % 2 == 1) {
      row.ratio = quantile(ratios(figures[way], figures[way - 1]), 0.5);
      row.baseline = ways[way - 1].name;
    }
    report.add(std::move(row));
  }
}

}  // namespace

absl::Status measure_ledger(const BenchOptions& options, Report& report) {
  report.section("ledger: one step each, nothing else");
  LedgerWorld world(options_of(4096));
  const SessionId session = world.open("steady", Mode::kExact, 1);
  const std::vector<Way> ways = {
      {"grant + free of a page", [&] { return grant_and_free(world, session); }},
      {"seal of a page (names it by its tokens)", [&] { return seal_one(world, session); }},
      {"end of a session, a page (becomes an entry)", close_a_page}};
  const auto figures = take_turns(options.pick(15, 3), ways);
  for (size_t way = 0; way < ways.size(); ++way) {
    report.add({.name = ways[way].name, .figure = spread_of(figures[way]), .unit = "ns"});
  }
  measure_recording(options, report);
  measure_pressure(options, Held::kByRunningSessions, report);
  measure_pressure(options, Held::kByNobody, report);
  return absl::OkStatus();
}

}  // namespace memdecay::bench
