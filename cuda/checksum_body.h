// The checksum code itself, compiled by checksum_portable.cc and checksum_avx2.cc with their own
// flags. Everything here has internal linkage and calls nothing inline from the standard library:
// code built for AVX2 must never be what another file links.
// The fused pass hashes a block, which brings it into the nearest cache, then writes it from there
// past the cache: memory sees one read and one write, as with the best plain copy.
// Thread: pure functions. Not for use outside the two files named above.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "proto/contract/ids.h"

namespace memdecay::cuda {
namespace {

// Half of a small first-level cache.
constexpr size_t kBlockBytes = 16 * 1024;
// Below this the target is likely to be read soon and fits a cache: plain stores.
constexpr size_t kStreamingBytes = 64 * 1024;

Checksum to_checksum(XXH128_hash_t hash) { return {.low = hash.low64, .high = hash.high64}; }

#if defined(__x86_64__)
// Copies a whole number of 64-byte lines to a 16-byte aligned target, past the cache.
void stream_lines(std::byte* to, const std::byte* from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 64) {
#if defined(__AVX2__)
    // The target is 32-byte aligned (see copy_block).
    const auto* source = reinterpret_cast<const __m256i*>(from + at);
    auto* target = reinterpret_cast<__m256i*>(to + at);
    const __m256i first = _mm256_loadu_si256(source);
    const __m256i second = _mm256_loadu_si256(source + 1);
    _mm256_stream_si256(target, first);
    _mm256_stream_si256(target + 1, second);
#else
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
#endif
  }
}
#endif

enum class Stores : uint8_t { kCached, kStreaming };

void copy_block(std::byte* to, const std::byte* from, size_t bytes, Stores stores) {
#if defined(__x86_64__)
  if (stores == Stores::kStreaming && bytes % 64 == 0 &&
      reinterpret_cast<uintptr_t>(to) % 64 == 0) {
    stream_lines(to, from, bytes);
    return;
  }
#endif
  (void)stores;
  std::memcpy(to, from, bytes);
}

Checksum hash_all(const std::byte* from, size_t bytes) {
  return to_checksum(XXH3_128bits(from, bytes));
}

Checksum copy_hash_all(std::byte* to, const std::byte* from, size_t bytes) {
  const Stores stores = bytes >= kStreamingBytes ? Stores::kStreaming : Stores::kCached;
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  size_t at = 0;
  while (at < bytes) {
    const size_t block = bytes - at < kBlockBytes ? bytes - at : kBlockBytes;
    XXH3_128bits_update(&state, from + at, block);
    copy_block(to + at, from + at, block, stores);
    at += block;
  }
#if defined(__x86_64__)
  // Streamed stores are weakly ordered: finish them before anybody is told.
  if (stores == Stores::kStreaming) _mm_sfence();
#endif
  return to_checksum(XXH3_128bits_digest(&state));
}

}  // namespace
}  // namespace memdecay::cuda
