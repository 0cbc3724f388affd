// Asks the model what it still knows: forced choices by likelihood, with the pages that are there.
//
// Why: retention of a page is only worth counting if it decides whether the fact can be told.
// Thread: one; decoder and scenario outlive it.
// Invariants: the episode's pages are read only and none is given up in between; each question sees
// the episode and the request to answer, not the questions before it.
// Not here: which pages are there (the caller), what the answers are compared with.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/reference/decoder.h"
#include "adapters/reference/private_store.h"
#include "tests/eval/scenario.h"

namespace memdecay::eval {

struct Answer {
  size_t chosen = 0;            // index into the question's options: the likeliest of them
  TokenId best = 0;             // the likeliest token of all
  double log_likelihood = 0.0;  // of the right option, natural
};

class Prober {
 public:
  Prober(reference::Decoder& decoder, const Scenario& scenario);

  // One answer a question, in their order. `pages`: the episode's, nullptr for holes.
  absl::StatusOr<std::vector<Answer>> ask(std::span<const std::byte* const> pages,
                                          std::span<const Question* const> questions);

 private:
  absl::StatusOr<std::vector<float>> compute(std::span<const TokenId> tokens, size_t position,
                                             reference::LogitRows logits);

  reference::Decoder& decoder_;
  const Scenario& scenario_;
  reference::PrivateStore own_;  // pages of the questions
  std::vector<const std::byte*> read_;
  std::vector<std::byte*> write_;
};

// The scenario's facts in order, then its standing instruction.
std::vector<const Question*> all_questions(const Scenario& scenario);

}  // namespace memdecay::eval
