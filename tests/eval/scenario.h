// A scenario as tokens: the file of one seed (generate.py), rendered as ChatML and laid on pages.
//
// Why: a fact's fate can only be told from its page's if it lies on one page alone, so texts are
// padded, token by token, until each fact, each instruction and each segment begins a page.
// Thread: pure functions.
// Invariants: tokens fill whole pages; a page belongs to one region; a fact, its full stop
// included, is inside one page; the value of a fact, and each of its options, is one token. Not
// here: who invents the texts; what is asked afterwards (prober.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/reference/chat.h"
#include "adapters/reference/episode.h"
#include "adapters/reference/tokenizer.h"
#include "proto/contract/ids.h"

namespace memdecay::eval {

inline constexpr size_t kPageTokens = 16;

// A forced choice: which of these tokens comes after `prefix`?
struct Question {
  std::vector<TokenId> prefix;  // the beginning of the answer, in the fact's own words
  std::vector<TokenId> options;
  size_t right = 0;  // index into options
};

struct Fact {
  std::string id;
  std::string region;
  std::string planting;  // opening, random
  std::string use;       // none, mentioned, quoted
  Question question;
  std::vector<PageIndex> pages;
  std::optional<size_t> used_at_step;  // decode step that computes the first token of the use
};

struct Scenario {
  std::string set;
  uint64_t seed = 0;
  std::vector<TokenId> tokens;
  size_t prefill_tokens = 0;  // the others are decoded one by one
  std::vector<reference::RegionSpan> spans;
  std::vector<Fact> facts;
  Question instruction;  // is the standing instruction of the first turn still obeyed?
  std::vector<PageIndex> instruction_pages;
  std::vector<TokenId> ask;  // what follows the episode before a question's prefix

  size_t pages() const { return tokens.size() / kPageTokens; }
  size_t prefill_pages() const { return prefill_tokens / kPageTokens; }
  std::string name() const { return set + "-" + std::to_string(seed); }
};

// invalid_argument names the place in the JSON text that is wrong.
absl::StatusOr<Scenario> parse_scenario(const std::string& json,
                                        const reference::Tokenizer& tokenizer,
                                        const reference::ChatTemplate& chat);
// not_found when there is no such file.
absl::StatusOr<Scenario> load_scenario(const std::string& path,
                                       const reference::Tokenizer& tokenizer,
                                       const reference::ChatTemplate& chat);

}  // namespace memdecay::eval
