// SipHash-2-4 (Aumasson, Bernstein 2012): a short hash under a key. Whoever does not have the key
// can neither tell which input a value stands for nor make two that meet.
// Thread: pure, any. Not here: names of contents (proto/contract/page_key.h), which everybody can
// compute.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace memdecay::base {

using HashKey = std::array<uint64_t, 2>;

uint64_t keyed_hash(const HashKey& key, std::span<const uint8_t> bytes);

}  // namespace memdecay::base
