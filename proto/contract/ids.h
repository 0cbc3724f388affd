// Identifiers that two processes or two layers agree on. All are issued by the daemon; a client
// never invents one. Each is its own type, so that a session cannot be passed for an engine.
// Thread: values, any.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <utility>

namespace memdecay {

// A number with a name. Tag is an empty type that nobody defines.
template <typename Tag, typename Number = uint64_t>
struct Id {
  Number value = 0;

  constexpr explicit operator bool() const { return value != 0; }
  constexpr auto operator<=>(const Id&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const Id& id) {
    return H::combine(std::move(state), id.value);
  }
};

using EngineId = Id<struct EngineTag>;
using SessionId = Id<struct SessionTag>;
using ContentId = Id<struct ContentTag>;  // a sealed page's bytes, wherever they are
using LeaseId = Id<struct LeaseTag>;
using DecisionId = Id<struct DecisionTag>;
using CopyId = Id<struct CopyTag>;
using RequestId = Id<struct RequestTag>;  // a caller that waits for a reply inside the daemon
using SlabId = Id<struct SlabTag, uint32_t>;
using TenantId = Id<struct TenantTag, uint32_t>;  // 1, 2, … in the order of the configuration
using Epoch = Id<struct EpochTag, uint32_t>;

// Index of a page in its session: position / page_tokens. Never renumbered.
using PageIndex = uint32_t;
// A token of the model's vocabulary.
using TokenId = uint32_t;
// 0..6 are the built-in regions of vocabulary.h, user-defined ones follow.
using RegionId = uint16_t;

// A place that holds one page on a device. `generation` counts the tenants of the place: a message
// about an older generation is void.
struct SlotRef {
  SlabId slab;
  uint32_t index = 0;
  uint32_t generation = 0;

  constexpr auto operator<=>(const SlotRef&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const SlotRef& slot) {
    return H::combine(std::move(state), slot.slab, slot.index, slot.generation);
  }
};

// SHA-256 values. NamespaceId names a layout (layout.h), PageKey a page's content (page_key.h).
using Digest = std::array<uint8_t, 32>;
struct NamespaceId {
  Digest bytes{};
  constexpr auto operator<=>(const NamespaceId&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const NamespaceId& id) {
    return H::combine(std::move(state), id.bytes);
  }
};
struct PageKey {
  Digest bytes{};
  constexpr auto operator<=>(const PageKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const PageKey& key) {
    return H::combine(std::move(state), key.bytes);
  }
};

// XXH3-128 of a page's bytes (cuda/checksum.h computes it).
struct Checksum {
  uint64_t low = 0;
  uint64_t high = 0;
  constexpr auto operator<=>(const Checksum&) const = default;
};

// A point on an engine's timeline page: reached once word[word] >= value, compared cyclically.
struct Fence {
  uint32_t member = 0;  // which member process of the engine wrote it
  uint32_t word = 0;
  uint64_t value = 0;  // 0: no fence, passed from the start

  constexpr auto operator<=>(const Fence&) const = default;
};

}  // namespace memdecay
