// Layout: everything that must be equal before one engine may read another's KV pages. Field by
// field the wire message memdecay.v1.Layout.
// Why: guessing a layout from tensor shapes is how caches serve wrong bytes. Every field is given
// by the adapter, resolved ("auto" is refused), and hashed; the hash is the namespace of content
// keys.
// Thread: a value. Invariant: equal canonical encodings <=> equal layouts.
// Not here: the wire message, the hash itself (page_key.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/contract/ids.h"

namespace memdecay {

// Bounds on what a peer may send.
inline constexpr uint32_t kMaxLayoutGroups = 64;
inline constexpr uint32_t kMaxLayoutTextBytes = 512;
inline constexpr uint32_t kMaxPageTokens = 4096;
inline constexpr uint64_t kMaxPageBytes = uint64_t{1} << 30;

struct RopeIdentity {
  std::string inv_freq_hash;    // of the float32 inverse frequencies; "none" for kind "none"
  std::string kind;             // "default", "linear", "yarn", "llama3", …, "none"
  double attention_factor = 0;  // 1 where the kind has none
  std::string pairing;          // "interleaved" (2i, 2i+1), "half" (i, i+n_rot/2), "none"
  uint32_t n_rot = 0;           // rotated dimensions of a head; 0 exactly for kind "none"

  bool operator==(const RopeIdentity&) const = default;
};

// Layers that share a shape. Sizes are those of one page on one member (tensor-parallel rank).
struct LayoutGroup {
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t page_tokens = 0;
  std::string packing;      // order of elements in a page, with the kernel's ISA where it matters
  uint32_t window = 0;      // sliding attention window in tokens; 0: full attention
  uint64_t page_bytes = 0;  // one page of this group: K, V and side data together

  bool operator==(const LayoutGroup&) const = default;
};

struct Layout {
  std::string model;
  std::string weights_fingerprint;
  std::string revision;
  std::string adapter;  // LoRA identity, or "none"
  std::string tokenizer_fingerprint;
  std::string dtype;         // of an element in a page: f32 f16 bf16 fp8_e4m3 fp8_e5m2 int8 int4
  std::string quantization;  // scheme, or "none"
  std::string scales;        // where they live: "inline" (in the page), "segment", "none"
  std::vector<LayoutGroup> groups;
  RopeIdentity rope;
  uint32_t tensor_parallel = 0;
  std::string producer;  // kind of engine that writes the pages: "reference", "vllm", …

  bool operator==(const Layout&) const = default;
};

// ok, or layout_rejected whose `asked` names the first field at fault ("groups[1].kv_heads").
absl::Status validate(const Layout& layout);
// validate(), and that every group has the page size that this daemon was configured with.
absl::Status validate(const Layout& layout, uint32_t daemon_page_tokens);

// Of a valid layout: bytes of one page, all groups together, contiguous in order of groups.
uint64_t page_bytes(const Layout& layout);
uint32_t page_tokens(const Layout& layout);

// The canonical encoding (canonical.h; tags in layout.cc and proto/README.md). Any layout has one.
std::string canonical_encoding(const Layout& layout);
// SHA-256 of the canonical encoding of a valid layout.
NamespaceId namespace_id(const Layout& layout);

}  // namespace memdecay
