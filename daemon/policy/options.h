// What a policy can be told: regions, protections, constants. One struct for every policy; a
// constant that is set for a policy without it is refused, never ignored (make_policy,
// registry.cc).
//
// Sources of the defaults: b and half-lives are the MemDecay paper's (arXiv 2607.10582, figure 2
// and the measured half-lives of its 1.5B long-context column); alpha, rho, tau are the paper's;
// beta, D, G, k0, the refresh rule and the expected lift are ours (memdecay_n.cc). Thread: values,
// any. Not here: how a constant is used (one file per policy).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/contract/vocabulary.h"

namespace memdecay::policy {

// The clock of a session's policy: accepted generated tokens. Prefill does not advance it.
using Step = uint64_t;

// What a region's age is counted in. A turn ends when its session begins to wait for the user.
enum class Clock : uint8_t { kTokens, kTurns, kSeconds };
inline constexpr size_t kClocks = 3;

// Whether pages wait with their decay for the end of their group (or of the turn).
enum class Held : uint8_t { kNo, kUntilEnded };

// A page that grows more valuable with age is worth at most this many doublings more than a fresh
// one: less than what use can add, so that elders do not outlive what is used.
inline constexpr double kMostGrowth = 2.0;

struct RegionParameters {
  double b = 0.6;           // worth of a fresh page; > 0
  double half_life = 31.0;  // by the clock; > 0; +infinity = never decays
  Clock clock = Clock::kTokens;
  double doubling = std::numeric_limits<double>::infinity();  // finite: grows, and no half-life
  double turn_decay = 0.0;                                    // half-lives that each turn costs
  Held held = Held::kNo;

  bool grows() const { return doubling < std::numeric_limits<double>::infinity(); }
  bool operator==(const RegionParameters&) const = default;
};

// Indexed by RegionId.
std::vector<RegionParameters> default_regions();

// Lift to be expected at a token distance: bin i holds distances in [2^i, 2^(i+1)), bin 0 also 0.
inline constexpr int kDistanceBins = 24;
using DistanceTable = std::array<double, kDistanceBins>;

// What attention a page at a distance gets anyway; memdecay_n judges a page against it.
struct ExpectedLift {
  enum class Table : uint8_t {
    kShipped,       // a small model's mean over the heads of its last third of layers
    kOne,           // no expectation
    kShippedHeads,  // its mean over twelve chosen heads
    kGiven,         // `given`
  };
  Table table = Table::kShipped;
  DistanceTable given{};                      // kGiven
  std::map<RegionId, DistanceTable> regions;  // these have their own

  DistanceTable of(RegionId region) const;
  bool operator==(const ExpectedLift&) const = default;
};

// When memdecay_n resets a page's clock (policy.md calls u the lift, x its expectation).
enum class RefreshRule : uint8_t {
  kLift,      // u >= refresh_lift, within the top refresh_fraction by u
  kExpected,  // u/x >= refresh_lift, within the top refresh_fraction by u/x
  kUniform,   // attention of a token >= tau_uniform/N, as the paper has it
  kNone,
};

struct PolicyOptions {
  std::string name = "memdecay_n";

  // How a session is protected while it is active.
  uint32_t page_tokens = 16;
  uint32_t sinks = 4;   // first positions; the pages that hold them are never victims
  uint32_t recent = 2;  // last sealed pages
  // Regions whose pages are protected. Not given: system for the memdecay forms and for every twin
  // ("h2o+pin"), none for the other baselines. A policy that was made has it set.
  std::optional<std::vector<RegionId>> pinned;
  bool grace = true;  // where the policy has one: all that attention drives, except memdecay

  // Empty = default_regions(). Entries beyond the built-in seven are user-defined regions.
  std::vector<RegionParameters> regions;
  // Names of regions from 7 on; there may be more regions than names.
  std::vector<std::string> own_regions;
  // All that a page may have.
  size_t known_regions() const {
    return std::max(
        {size_t{kBuiltInRegions}, regions.size(), kBuiltInRegions + own_regions.size()});
  }

  // random only: a whole number that all draws depend on, 0.
  std::optional<double> seed;
  // snapkv only: the queries that count, 1 to 32; 32.
  std::optional<double> window_queries;

  // memdecay and memdecay_n: what practice adds.
  std::optional<double> boost;             // half-lives by which a referenced page is lifted: 0
  std::optional<double> boost_neighbours;  // pages on each side that are lifted with it: 1
  std::optional<double> valve_score;       // pages this high do not go by score: infinity
  std::optional<std::vector<RegionId>> valve_regions;  // of them the oldest go: user, scratchpad

  // memdecay only (paper).
  std::optional<double> alpha;        // weight of received attention, 0.5
  std::optional<double> rho;          // memory of received attention, 0.9
  std::optional<double> tau_uniform;  // refresh at this many times 1/N, 2; also kUniform's

  // memdecay_n only (ours).
  std::optional<double> beta;               // half-lives per bit of evidence: 1; more if calibrated
  std::optional<double> gamma;              // half-lives per bit of the highest u/x so far: 1
  std::optional<double> decay_cap;          // D, half-lives: 4; infinity: none
  std::optional<double> memory_tokens;      // G, half-life of the evidence: 4,096
  std::optional<double> prior_evidence;     // k0: 2
  std::optional<RefreshRule> refresh_rule;  // kNone
  std::optional<double> refresh_lift;       // that refreshes: 4
  std::optional<double> refresh_fraction;   // and within this top share of movable pages: 0.1
  std::optional<ExpectedLift> expected_lift;  // kShipped
};

}  // namespace memdecay::policy
