// What is to be replayed: policies with their options, channels, sampling, budgets. A plan is a
// JSON file (tests/eval/plans), so that a table can be made anew from what stands beside it.
//
//   {"budgets": [50, 25],
//    "runs": [{"policy": ["h2o", "h2o+pin"], "sampling": [1, 16]},
//             {"policy": "memdecay_n", "variant": "beta0", "set": {"policy.beta": 0}}]}
//
// "channels": {"chosen": "L23H4+L28H2"} gives a mean of recorded channels a name of its own.
// A list stands for each of its entries. `set`: settings of the daemon; "{seed}" in one is the
// recording's seed, so that chance differs from recording to recording. `channel`: "all" unless
// said. `sampling` k: every k-th generated token is observed; `queries` says how: "last" (the
// default), that token alone, or "mean", all k of them together, told as one observation.
// `prefill`: whether the prompt's attention is reported too ("observed", the default) or only
// decoding's ("unobserved"). `pin_facts` pins the pages of the facts. `as`: the policy's name in
// the results.
// Thread: any; values. Not here: who replays it (replay.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace memdecay::eval {

struct PlannedRun {
  std::string policy;           // as the daemon knows it
  std::string as;               // as the results call it
  std::string variant;          // "default" or what was changed
  std::string channel = "all";  // as the results call it
  std::string heads = "all";    // as the recording calls it: one channel, or some joined by +
  uint32_t sampling = 1;        // generated tokens from one observation to the next
  enum class Queries : uint8_t { kLast, kMean } queries = Queries::kLast;
  enum class Prefill : uint8_t { kObserved, kUnobserved } prefill = Prefill::kObserved;
  enum class Facts : uint8_t { kAsTheyAre, kPinned } facts = Facts::kAsTheyAre;
  std::map<std::string, std::string> settings;
  std::vector<uint32_t> budgets;  // percent of the pages, falling; 100: no budget

  bool differs_by_seed() const;
  // The settings of the daemon that serves it, as KEY=VALUE.
  std::vector<std::string> daemon_settings(uint64_t seed) const;
  // As plans and results write it.
  std::string queries_name() const;
  std::string prefill_name() const;
  // What makes it another run than any other of the results.
  std::string key() const;
};

struct Plan {
  std::vector<PlannedRun> runs;
  std::vector<std::string> heads() const;  // of all runs, each once
};

// invalid_argument names the file, the run and what is wrong: unknown keys, no policy, a budget
// outside 1 to 100 or a rising one, two runs with one key.
absl::StatusOr<Plan> read_plan(const std::string& path);

}  // namespace memdecay::eval
