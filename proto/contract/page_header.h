// The header that stands before a page's bytes wherever a replica is stored outside a device slot
// (host tier, later disk and remote). 160 bytes, little endian, fixed: kPageHeader* offsets below.
// The checksum covers namespace, name, position, size and generation as well as the bytes, so that
// a valid old record can never be read as the page that took its place.
// Thread: values and pure functions. Invariant: decode(encode(h)) == h.
// Not here: computing the checksum (cuda/checksum.h: replica_checksum).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "proto/contract/ids.h"

namespace memdecay {

inline constexpr uint64_t kPageHeaderMagic = 0x31304547'4150444d;  // "MDPAGE01"
inline constexpr uint32_t kPageHeaderVersion = 1;
inline constexpr size_t kPageHeaderBytes = 160;

// Where each field starts. name: 32 bytes of page key, or session (u64) + 24 zeros.
inline constexpr size_t kPageHeaderMagicAt = 0;        // u64
inline constexpr size_t kPageHeaderVersionAt = 8;      // u32
inline constexpr size_t kPageHeaderKindAt = 12;        // u32: 1 exact, 2 private
inline constexpr size_t kPageHeaderNamespaceAt = 16;   // 32 bytes
inline constexpr size_t kPageHeaderNameAt = 48;        // 32 bytes
inline constexpr size_t kPageHeaderPageAt = 80;        // u32: page index in its session
inline constexpr size_t kPageHeaderTokensAt = 84;      // u32: tokens in the page
inline constexpr size_t kPageHeaderPageBytesAt = 88;   // u64
inline constexpr size_t kPageHeaderGenerationAt = 96;  // u64
inline constexpr size_t kPageHeaderReservedAt = 104;   // 40 bytes, zero
inline constexpr size_t kPageHeaderChecksumAt = 144;   // low u64, high u64
static_assert(kPageHeaderChecksumAt + 16 == kPageHeaderBytes);
static_assert(kPageHeaderBytes % 32 == 0, "a page behind the header stays aligned for AVX loads");

struct PageHeader {
  NamespaceId space;
  std::optional<PageKey> key;  // exact pages only
  SessionId session;           // private pages only: whose it is
  PageIndex page = 0;
  uint32_t tokens = 0;
  uint64_t page_bytes = 0;
  uint64_t generation = 0;  // of the place the record lies in, given by the tier
  Checksum checksum;        // of the bytes and of this header with the checksum zeroed

  bool operator==(const PageHeader&) const = default;
};

using PageHeaderImage = std::array<std::byte, kPageHeaderBytes>;

// Checked: exactly one of key and session is given.
PageHeaderImage encode_page_header(const PageHeader& header);
// invalid_argument names the field: wrong magic, version, kind, sizes out of bounds, non-zero
// padding. The checksum is the caller's to verify.
absl::StatusOr<PageHeader> decode_page_header(std::span<const std::byte> bytes);

}  // namespace memdecay
