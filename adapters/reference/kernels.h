// The arithmetic of a decoder, as a table of functions with two implementations.
//
// Why: every sum has one fixed order of additions, so prefill in any chunks, one-by-one decoding,
// any number of threads, any slot addresses and both implementations give the same bits. BLAS
// libraries do not promise that (a row in a batch differs from the row alone).
// Thread: pure functions on the caller's buffers.
// Invariants: sums run over eight interleaved lanes with fused multiply-adds, lanes are joined as
// ((0+4)+(2+6)) + ((1+5)+(3+7)); widths, head sizes and page sizes are multiples of eight.
// Not here: what is multiplied with what (decoder.h), threads (thread_pool.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "adapters/reference/kv_page.h"

namespace memdecay::reference {

// output[t][r] = sum over i of weights[r][i] * input[t][i], for rows [row_begin, row_end).
struct MatrixTask {
  const float* weights;  // [rows][width]
  const float* input;    // token t at input + t * input_stride
  float* output;         // token t at output + t * output_stride
  size_t width;
  size_t input_stride;
  size_t output_stride;
  size_t tokens;
  size_t row_begin;
  size_t row_end;
};

// One query head of one token over the resident pages up to its own position.
struct AttentionTask {
  const float* query;                       // [head_dim]
  float* output;                            // [head_dim]
  float* weights;                           // [pages.size() * page_tokens]: attention weights
  std::span<const std::byte* const> pages;  // resident pages in order; the last holds the query
  size_t last_tokens;                       // tokens of the last page that the query may see
  size_t page_tokens;
  size_t head_dim;
  size_t key_offset;    // from a page's start to its first key of this layer and head
  size_t value_offset;  // likewise for values
  float scale;
};

struct Kernels {
  std::string_view name;
  void (*multiply)(const MatrixTask& task);
  // output[i] = input[i] / sqrt(mean(input^2) + epsilon) * gain[i]
  void (*rms_norm)(const float* input, const float* gain, size_t width, float epsilon,
                   float* output);
  // gate[i] = silu(gate[i]) * up[i]
  void (*gated)(float* gate, const float* up, size_t width);
  // Stores floats as KV elements.
  void (*store)(KvType type, const float* input, size_t count, std::byte* output);
  void (*attend)(KvType type, const AttentionTask& task);
};

enum class KernelChoice { kBest, kPortable };

// kBest: AVX2 with FMA and F16C where the processor has them, else portable.
const Kernels& choose_kernels(KernelChoice choice);
const Kernels& portable_kernels();
// Only to be called on a processor that has AVX2, FMA and F16C.
const Kernels& avx2_kernels();
bool processor_has_avx2();

}  // namespace memdecay::reference
