// Layout: everything that must be equal before one engine may read another's KV pages.
// Why: guessing a layout from tensor shapes is how caches serve wrong bytes. Every field is given by
// the adapter, resolved ("auto" is refused), and hashed; the hash is the namespace of content keys.
// Thread: a value. Invariant: equal canonical encodings <=> equal layouts.
// Not here: the wire message (memdecay/v1), the hash itself (page_key.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/contract/ids.h"

namespace memdecay {

// The window of a group with full attention. 0 means "not filled in" and is refused.
inline constexpr uint32_t kFullAttention = 0xffffffffu;

// Bounds on what a peer may send.
inline constexpr uint32_t kMaxLayoutGroups = 64;
inline constexpr uint32_t kMaxLayoutTextBytes = 512;
inline constexpr uint32_t kMaxPageTokens = 4096;
inline constexpr uint64_t kMaxPageBytes = uint64_t{1} << 30;

enum class ScalePlacement : uint8_t {
  kUnset = 0,
  kNone,     // elements are plain numbers
  kInPage,   // scales lie inside the page's bytes (LayoutGroup::scale_bytes_per_page)
  kOutside,  // scales are constants of the model, in no page
};

enum class RopePairing : uint8_t {
  kUnset = 0,
  kNone,         // no rotary embedding
  kHalves,       // pairs (i, i + n_rot/2)
  kInterleaved,  // pairs (2i, 2i + 1)
};

struct RopeIdentity {
  Digest inv_freq_sha256{};     // of the float32 LE inverse frequencies; zeros only for kind "none"
  std::string kind;             // none, plain, linear, dynamic, yarn, llama3, longrope, …
  double attention_factor = 0;  // 1 where the kind has none
  RopePairing pairing = RopePairing::kUnset;
  uint32_t n_rot = 0;           // rotated dimensions of a head; 0 only for kind "none"

  bool operator==(const RopeIdentity&) const = default;
};

// Layers that share a shape. Sizes are those of one page on one member (tensor-parallel rank).
struct LayoutGroup {
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t page_tokens = 0;
  std::string packing;                // element order inside a page, with the kernel's ISA where it
                                      // matters: "khd.ktd.vtd", "nhd-split", "amx-bf16-vnni", …
  uint32_t window_tokens = 0;         // sliding window, or kFullAttention
  uint32_t scale_bytes_per_page = 0;  // > 0 exactly when ScalePlacement::kInPage

  bool operator==(const LayoutGroup&) const = default;
};

struct Layout {
  std::string model_id;
  std::string weights_fingerprint;
  std::string weights_revision;
  std::string adapter;                // LoRA identity, or "none"
  std::string tokenizer_fingerprint;
  std::string dtype;                  // an element of K and V in a page: see element_bytes()
  std::string quantisation;           // scheme of the page's elements, or "none"
  ScalePlacement scales = ScalePlacement::kUnset;
  std::vector<LayoutGroup> groups;
  RopeIdentity rope;
  uint32_t tensor_parallel_size = 0;
  std::string producer;               // kind of engine that writes the pages: "reference", "vllm", …

  bool operator==(const Layout&) const = default;
};

// ok, or layout_rejected whose `asked` names the first field at fault ("groups[1].kv_heads").
absl::Status validate(const Layout& layout);
// validate(), and that every group has the page size that this daemon was configured with.
absl::Status validate(const Layout& layout, uint32_t page_tokens);

// Bytes of one element of `dtype` (f32 4, f16 bf16 2, fp8_e4m3 fp8_e5m2 int8 1), or 0 if unknown.
uint32_t element_bytes(const std::string& dtype);
// Of a valid layout: K and V of all groups' layers for one page, contiguous, in order of groups.
uint64_t page_bytes(const Layout& layout);
uint32_t page_tokens(const Layout& layout);

// The canonical encoding (canonical.h; tags in layout.cc and proto/README.md). Any layout has one.
std::string canonical_encoding(const Layout& layout);
// SHA-256 of the canonical encoding of a valid layout.
NamespaceId namespace_id(const Layout& layout);

}  // namespace memdecay
