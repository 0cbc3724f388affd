// Computes a scenario once with all its pages and hands out what each step saw.
//
// Why: all policies are judged on the same observations; they are exactly those that an engine
// would report step by step (the decoded part is computed in batches, with the same bits).
// Thread: one; the model's pool helps.
// Invariants: steps come in order: chunks of the prompt, then every decoded token alone; each holds
// one result for each choice of heads, in the order of the choices.
// Not here: who is told (episode_recorder.h, live_session.h), steps with pages missing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "adapters/reference/decoder.h"
#include "adapters/reference/page_store.h"
#include "tests/eval/scenario.h"

namespace memdecay::eval {

inline constexpr size_t kChunkTokens = 128;  // of one prefill step

struct SeenStep {
  uint64_t step = 0;  // decoded tokens so far, this one included; 0: the prompt's
  size_t begin = 0;   // positions of its queries, half open
  size_t end = 0;
  std::span<const reference::PageMasses> masses;  // by choice; valid during the call
};
using TakeStep = std::function<absl::Status(const SeenStep&)>;

// `store` is empty and holds the episode's pages afterwards. What `take` returns ends the pass.
absl::Status pass_episode(reference::Decoder& decoder, const Scenario& scenario,
                          std::vector<reference::HeadChoice> choices, reference::PageStore& store,
                          const TakeStep& take);

}  // namespace memdecay::eval
