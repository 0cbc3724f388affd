// Bytes of KV cache that a model needs, from the header of its GGUF file. Only metadata is read; a
// wrong or truncated file is an error that says where.
// Thread: pure but for reading the file. Not here: weights, tensors (the reference engine).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace memdecay::ctl {

struct ModelSize {
  std::string name;
  std::string architecture;
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  std::string dtype;  // of the cache
  uint32_t page_tokens = 0;
  uint64_t token_bytes = 0;
  uint64_t page_bytes = 0;
};

// invalid_argument: no GGUF of version 2 or 3, truncated, or without the fields that are needed.
absl::StatusOr<ModelSize> size_of(std::span<const char> gguf_header, uint32_t page_tokens,
                                  const std::string& dtype);
absl::StatusOr<ModelSize> size_of_file(const std::string& path, uint32_t page_tokens,
                                       const std::string& dtype);

}  // namespace memdecay::ctl
