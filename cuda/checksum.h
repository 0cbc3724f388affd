// XXH3-128 of page bytes, alone or in the same pass as a copy. The fused pass works in blocks that
// stay in the cache, so that memory is read once. The result is plain XXH3-128 with seed 0 of the
// whole range, on every CPU.
// Thread: pure functions, any thread. Not here: when checksums are taken and verified.
#pragma once

#include <cstddef>
#include <span>

#include "proto/contract/ids.h"
#include "proto/contract/page_header.h"

namespace memdecay::cuda {

Checksum checksum_of(std::span<const std::byte> bytes);

// Copies `from` to `to` (same length, not overlapping: checked) and returns the checksum of what
// was written.
Checksum copy_with_checksum(std::span<std::byte> to, std::span<const std::byte> from);

// The checksum of a stored replica: over the header's image with its checksum field zeroed, then
// the checksum of the bytes. It covers both, and costs nothing per byte once `content` is known.
Checksum replica_checksum(PageHeader header, const Checksum& content);

}  // namespace memdecay::cuda
