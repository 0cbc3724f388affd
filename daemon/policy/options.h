// What a policy can be told: regions, protections, constants. One struct for every policy; a
// constant that is set for a policy without it is refused, never ignored (make_policy,
// registry.cc).
//
// Sources of the defaults: b and half-lives are the MemDecay paper's (arXiv 2607.10582, figure 2
// and the measured half-lives of its 1.5B long-context column); alpha, rho, tau are the paper's;
// beta, D, G, k0, the refresh rule and the expected lift are ours (memdecay_n.cc). Thread: values,
// any. Not here: how a constant is used (one file per policy).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/contract/vocabulary.h"

namespace memdecay::policy {

// The decay clock: accepted generated tokens of a session. Prefill does not advance it.
using Step = uint64_t;

struct RegionParameters {
  double b = 0.6;                  // worth of a fresh page; > 0
  double half_life_tokens = 31.0;  // > 0; +infinity = never decays
};

// Indexed by RegionId.
std::vector<RegionParameters> default_regions();

// Lift to be expected at a token distance: bin i holds distances in [2^i, 2^(i+1)), bin 0 also 0.
inline constexpr int kDistanceBins = 24;
using DistanceTable = std::array<double, kDistanceBins>;
DistanceTable shipped_expected_lift();

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

  // random only: a whole number that all draws depend on, 0.
  std::optional<double> seed;
  // snapkv only: the queries that count, 1 to 32; 32.
  std::optional<double> window_queries;

  // memdecay only (paper).
  std::optional<double> alpha;        // weight of received attention, 0.5
  std::optional<double> rho;          // memory of received attention, 0.9
  std::optional<double> tau_uniform;  // refresh at this many times 1/N, 2

  // memdecay_n only (ours).
  std::optional<double> beta;                // bits per bit of evidence: 1; up to 2 if calibrated
  std::optional<double> decay_cap;           // D, half-lives: 4
  std::optional<double> memory_tokens;       // G, half-life of the evidence: 4,096
  std::optional<double> prior_evidence;      // k0: 2
  std::optional<double> refresh_lift;        // u that refreshes: 4
  std::optional<double> refresh_fraction;    // and within this top share of movable pages: 0.1
  std::vector<DistanceTable> expected_lift;  // by region; empty = shipped; calibrated otherwise
};

}  // namespace memdecay::policy
