// Agent episodes: conversations with tagged regions, turns and pauses, ready to be computed.
//
// Why: demo, tests and evaluation need the same long, tagged, multi-turn sessions; episodes are
// JSON files (episodes/README.md) and become token ids here.
// Thread: pure functions.
// Invariants: spans of a turn cover all its tokens without gaps, in order; every turn but the first
// starts by closing the assistant message that the turn before opened.
// Not here: computing them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/reference/chat.h"
#include "proto/contract/ids.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::reference {

struct RegionSpan {
  size_t begin = 0;  // indices into the turn's tokens, end exclusive
  size_t end = 0;
  Region region = Region::kUser;
};

struct EpisodeTurn {
  std::vector<TokenId> tokens;  // to prefill; ends with the opening of the assistant's message
  std::vector<RegionSpan> spans;
  size_t generate = 0;  // tokens to generate after them; region: kGeneratedRegion
  SessionState pause = SessionState::kWaitingUser;  // what the session waits for afterwards
};

struct Episode {
  // What the engine writes itself, the markers around it included.
  static constexpr Region kGeneratedRegion = Region::kScratchpad;

  std::string name;
  std::vector<EpisodeTurn> turns;

  size_t prefill_tokens() const;
  size_t generated_tokens() const;
};

// invalid_argument names the place in the JSON text that is wrong.
absl::StatusOr<Episode> parse_episode(std::string_view json, const ChatTemplate& chat);
// not_found when there is no such file.
absl::StatusOr<Episode> load_episode(const std::string& path, const ChatTemplate& chat);

}  // namespace memdecay::reference
