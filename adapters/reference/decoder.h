// The forward pass of a Llama-family model over KV pages that belong to somebody else.
//
// Why: proves that an engine can decode out of pages it does not own, holes and moved slots
// included, with results that are the same bits every time.
// Thread: one thread calls forward(); the pool's members help. The caller keeps every page of the
// table readable (and the written ones writable) until forward() returns.
// Invariants: the decoder keeps no K or V; its memory is fixed at construction, logits and masses
// apart. A token's result depends on the tokens before it, on which pages are holes, and on
// nothing else: not on chunks, threads, addresses or the kernels chosen.
// Not here: granting pages, sealing, sessions, sampling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/reference/attention_mass.h"
#include "adapters/reference/float_arena.h"
#include "adapters/reference/kernels.h"
#include "adapters/reference/kv_page.h"
#include "adapters/reference/model.h"
#include "adapters/reference/thread_pool.h"
#include "proto/contract/ids.h"

namespace memdecay::reference {

enum class LogitRows { kNone, kLast, kAll };

struct ForwardInput {
  std::span<const TokenId> tokens;  // at least one
  size_t first_position = 0;        // of tokens[0]; earlier positions are already in their pages
  PageTable pages;                  // covers all positions; those of `tokens` are writable
  LogitRows logits = LogitRows::kLast;
  const MassRequest* masses = nullptr;  // nullptr: not wanted, and nothing is spent on them
};

struct ForwardOutput {
  std::vector<float> logits;       // [rows][vocabulary]
  std::vector<PageMasses> masses;  // [group][choice]; empty: not wanted
};

class Decoder {
 public:
  static constexpr size_t kBatchTokens = 128;  // longer inputs are computed in chunks of this size

  // `model` and `pool` outlive the decoder. `page_tokens` is a multiple of eight.
  Decoder(const Model& model, ThreadPool& pool, KvType type, KernelChoice choice,
          size_t page_tokens = 16);

  const KvLayout& layout() const { return layout_; }
  const Kernels& kernels() const { return kernels_; }

  // Writes K and V of `tokens` into their pages and returns what was asked for. On an error
  // nothing is written. invalid_argument: no tokens, a token outside the vocabulary, a page of
  // `tokens` without write address or a hole, masses of layers or heads that do not exist, masses
  // of the last queries in groups.
  // out_of_range: positions beyond the model's context or the table.
  absl::StatusOr<ForwardOutput> forward(const ForwardInput& input);

 private:
  struct Chunk {
    std::span<const TokenId> tokens;
    size_t first_position;
    const ForwardInput* input;
    MassCollector* masses;  // nullptr: not wanted
  };

  absl::Status check(const ForwardInput& input) const;
  void find_resident(const PageTable& pages, size_t last_position);
  void run_chunk(const Chunk& chunk);
  void add_and_normalise(size_t count, std::span<const float> gain);
  void attention(const Chunk& chunk, size_t layer);
  void rotate_and_store(const Chunk& chunk, size_t layer, size_t token);
  void attend(const Chunk& chunk, size_t layer, size_t token, size_t head, int member);
  void feed_forward(const Chunk& chunk, size_t layer);
  void multiply(const MatrixTask& task, size_t rows);
  void write_logits(size_t first, size_t count, std::span<float> logits);

  const Model& model_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  KvLayout layout_;
  FloatArena arena_;
  std::span<float> residual_;        // [batch][width]
  std::span<float> normal_;          // [batch][width], normalised input of a matrix
  std::span<float> delta_;           // [batch][width], what a block adds to the residual
  std::span<float> qkv_;             // [batch][qkv_width]
  std::span<float> attended_;        // [batch][query_width]
  std::span<float> gate_up_;         // [batch][2 * ffn]
  std::span<float> weights_;         // [threads][context]: attention weights of one query and head
  std::vector<PageIndex> resident_;  // indices of pages that are no holes
  std::vector<const std::byte*> resident_address_;  // their addresses
};

}  // namespace memdecay::reference
