// One growing token sequence: what is known, what of it is computed, and computing the rest.
//
// Why: prefill, decoding, resuming, repairing and reading logits again are all the same thing:
// tokens are known and pages of some of them are missing. This is the one place that computes.
// Thread: one; decoder and store outlive it.
// Invariants: computed() <= tokens().size(); pages below sealed_pages() are sealed, in order, each
// once; a page is claimed free of holes only if no token in or before it was computed with one.
// Not here: where tokens come from (engine.h), where pages live (page_store.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/reference/decoder.h"
#include "adapters/reference/mass_window.h"
#include "adapters/reference/page_store.h"
#include "proto/contract/ids.h"

namespace memdecay::reference {

// What the session promises: with kExact a hole in a forward pass is an error.
enum class Promise : uint8_t { kExact, kLossy };

struct SequenceCounters {
  uint64_t forwarded = 0;   // tokens that went through the model
  uint64_t recomputed = 0;  // of them at positions that had been computed before
  uint64_t shared = 0;      // tokens whose pages came from somebody else
  uint64_t with_holes = 0;  // tokens computed while a page was missing
};

class Sequence {
 public:
  // A prefill goes through the model in pieces of at most `chunk_tokens`.
  Sequence(Decoder& decoder, PageStore& store, Promise promise, size_t chunk_tokens,
           PhaseHook hook);

  const std::vector<TokenId>& tokens() const { return tokens_; }
  size_t computed() const { return computed_; }
  size_t sealed_pages() const { return sealed_pages_; }
  uint64_t step() const { return step_; }
  const SequenceCounters& counters() const { return counters_; }
  void promise(Promise promise) { promise_ = promise; }
  // Whose attention is reported; they exist in the model. Empty: all.
  void observe_heads(HeadChoice heads) { observed_heads_ = std::move(heads); }
  void limit_chunk(size_t tokens) { chunk_tokens_ = std::min(chunk_tokens_, tokens); }

  // Tokens whose sealed pages the store has already. `approximate_from`: first such position.
  void adopt(std::span<const TokenId> tokens, std::optional<size_t> approximate_from,
             uint64_t step);
  // Known, not computed yet.
  void append(std::span<const TokenId> tokens);
  // Accepted by the sampler: append() and one step of the decay clock.
  void accept(TokenId token);
  // The first `tokens` known tokens have sealed pages now that somebody else computed.
  void take_shared(size_t tokens);
  // Computes what is known and not computed.
  absl::Status catch_up();
  // Of the last known token; computes what is missing for it, at worst the last page again.
  absl::StatusOr<std::span<const float>> logits();
  // The next logits() computes them again, from the pages as they are then.
  void forget_logits() { logits_of_ = 0; }
  // Forgets tokens from `count` on.
  absl::Status truncate(size_t count);
  // Keeps all tokens, but those from the page of `position` on must be computed again.
  absl::Status discard(size_t position);

 private:
  absl::Status compute(size_t count);
  absl::Status begin_whole_step();
  // What is to be reported of it, if anything.
  absl::StatusOr<std::optional<PageMasses>> forward(size_t count);
  absl::Status seal_full_pages();
  bool has_holes(const PageTable& table) const;

  Decoder& decoder_;
  PageStore& store_;
  Promise promise_;
  size_t chunk_tokens_;
  size_t page_tokens_;
  PhaseHook hook_;
  HeadChoice observed_heads_;
  MassWindow window_;  // of decoded tokens since the last report
  std::vector<TokenId> tokens_;
  size_t computed_ = 0;
  size_t high_water_ = 0;  // positions below it have been computed once
  size_t sealed_pages_ = 0;
  size_t granted_pages_ = 0;
  std::optional<size_t> first_tainted_;  // first position computed with something missing
  uint64_t step_ = 0;
  std::vector<float> logits_;
  size_t logits_of_ = 0;  // logits_ are those after so many tokens; 0: none
  SequenceCounters counters_;
};

}  // namespace memdecay::reference
