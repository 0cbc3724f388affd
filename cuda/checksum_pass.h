// The two builds of the checksum code, which checksum.cc chooses from. Equal results on equal
// bytes.
// Thread: pure functions. Not for use outside cuda/checksum.cc and its tests.
#pragma once

#include <cstddef>

#include "proto/contract/ids.h"

namespace memdecay::cuda {

using HashFunction = Checksum(const std::byte* from, size_t bytes);
using CopyHashFunction = Checksum(std::byte* to, const std::byte* from, size_t bytes);

HashFunction hash_portable;
CopyHashFunction copy_hash_portable;
#if defined(__x86_64__)
HashFunction hash_avx2;  // only where the CPU has AVX2
CopyHashFunction copy_hash_avx2;
#endif

}  // namespace memdecay::cuda
