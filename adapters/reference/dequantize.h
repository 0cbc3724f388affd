// Quantised weight blocks to float32.
//
// Why: the engine computes in float32 throughout, so that one order of additions decides all bits.
// Thread: pure functions.
// Invariant: each value is computed as the format says, in float32, with no fused operation.
// Not here: where blocks lie (gguf.h).
// Formats: https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h
#pragma once

#include <span>

#include "adapters/reference/gguf.h"

namespace memdecay::reference {

// Writes elements [first, first + out.size()) of the tensor. `first` and out.size() are whole
// blocks of the tensor's type and lie inside it.
void dequantize(const Tensor& tensor, uint64_t first, std::span<float> out);

}  // namespace memdecay::reference
