// Checksums with AVX2, built with -march=x86-64-v3 (see checksum_pass.h).
#include "cuda/checksum_body.h"
#include "cuda/checksum_pass.h"

namespace memdecay::cuda {

Checksum hash_avx2(const std::byte* from, size_t bytes) { return hash_all(from, bytes); }

Checksum copy_hash_avx2(std::byte* to, const std::byte* from, size_t bytes) {
  return copy_hash_all(to, from, bytes);
}

}  // namespace memdecay::cuda
