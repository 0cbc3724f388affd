// Checksums with what every CPU of the architecture has (see checksum_pass.h).
#include "cuda/checksum_body.h"
#include "cuda/checksum_pass.h"

namespace memdecay::cuda {

Checksum hash_portable(const std::byte* from, size_t bytes) { return hash_all(from, bytes); }

Checksum copy_hash_portable(std::byte* to, const std::byte* from, size_t bytes) {
  return copy_hash_all(to, from, bytes);
}

}  // namespace memdecay::cuda
