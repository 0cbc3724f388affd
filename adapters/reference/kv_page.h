// The bytes of a KV page and the table through which a decoder reaches pages it does not own.
//
// Why: pages belong to somebody else (a daemon, a test); the decoder only gets addresses, which may
// change between calls.
// Thread: values.
// Invariants: a slot holds one page of `page_tokens` positions as [layer][K, V][head][token][dim];
// a hole never renumbers positions.
// Not here: who owns slots, when they may be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace memdecay::reference {

enum class KvType { kF16, kF32 };
enum class KvPart { kKey = 0, kValue = 1 };

struct KvLayout {
  size_t layers = 0;
  size_t kv_heads = 0;
  size_t head_dim = 0;
  size_t page_tokens = 16;  // a multiple of eight
  KvType type = KvType::kF16;

  size_t element_bytes() const { return type == KvType::kF16 ? 2 : 4; }
  size_t layer_bytes() const { return 2 * kv_heads * page_tokens * head_dim * element_bytes(); }
  size_t page_bytes() const { return layers * layer_bytes(); }
  size_t offset(size_t layer, KvPart part, size_t head, size_t token) const {
    const size_t half = static_cast<size_t>(part);
    const size_t row = ((layer * 2 + half) * kv_heads + head) * page_tokens + token;
    return row * head_dim * element_bytes();
  }
};

// Index i stands for positions [i * page_tokens, (i + 1) * page_tokens).
struct PageTable {
  std::span<const std::byte* const> read;  // nullptr: a hole, skipped by attention
  std::span<std::byte* const> write;       // nullptr: not writable by this engine
};

}  // namespace memdecay::reference
