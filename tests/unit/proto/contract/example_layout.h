// A layout that is right in every field, for tests to spoil; and seeded numbers for fuzzing.
// Thread: pure. Not here: golden vectors (proto/golden).
#pragma once

#include <cstdint>

#include "proto/contract/layout.h"

namespace memdecay {

inline Layout example_layout() {
  return {.model = "SmolLM2-135M-Instruct",
          .weights_fingerprint = "sha256:b179",
          .revision = "Q4_1",
          .adapter = "none",
          .tokenizer_fingerprint = "smollm-49152",
          .dtype = "f16",
          .quantization = "none",
          .scales = "none",
          .groups = {{.layers = 30,
                      .kv_heads = 3,
                      .head_dim = 64,
                      .page_tokens = 16,
                      .packing = "layer.kv.head.token.dim",
                      .window = 0,
                      .page_bytes = 368640}},
          .rope = {.inv_freq_hash = "sha256:abcd",
                   .kind = "default",
                   .attention_factor = 1.0,
                   .pairing = "interleaved",
                   .n_rot = 64},
          .tensor_parallel = 1,
          .producer = "reference"};
}

// splitmix64: the same numbers on every machine.
class SeededNumbers {
 public:
  explicit SeededNumbers(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

}  // namespace memdecay
