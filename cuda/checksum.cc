// Choosing the checksum code for this CPU (see checksum.h; the code itself is checksum_body.h,
// compiled once for every x86-64 and once for AVX2).
#include "cuda/checksum.h"

#include <array>
#include <cstring>
#include <functional>

#include "cuda/checksum_pass.h"
#include "proto/contract/check.h"

namespace memdecay::cuda {
namespace {

struct Pass {
  HashFunction* hash;
  CopyHashFunction* copy_hash;
};

// Equal results, different speed. Fixed for the life of the process.
const Pass& pass() {
#if defined(__x86_64__)
  static const Pass chosen = __builtin_cpu_supports("avx2")
                                 ? Pass{hash_avx2, copy_hash_avx2}
                                 : Pass{hash_portable, copy_hash_portable};
#else
  static const Pass chosen{hash_portable, copy_hash_portable};
#endif
  return chosen;
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  const std::less<> before;
  return before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

}  // namespace

Checksum checksum_of(std::span<const std::byte> bytes) {
  return pass().hash(bytes.data(), bytes.size());
}

Checksum copy_with_checksum(std::span<std::byte> to, std::span<const std::byte> from) {
  MEMDECAY_CHECK(to.size() == from.size());
  MEMDECAY_CHECK(from.empty() || !overlap(to, from));
  return pass().copy_hash(to.data(), from.data(), from.size());
}

Checksum replica_checksum(PageHeader header, const Checksum& content) {
  header.checksum = {};
  const PageHeaderImage image = encode_page_header(header);
  std::array<std::byte, kPageHeaderBytes + sizeof(Checksum)> both;
  std::memcpy(both.data(), image.data(), image.size());
  std::memcpy(both.data() + image.size(), &content.low, 8);
  std::memcpy(both.data() + image.size() + 8, &content.high, 8);
  return checksum_of(both);
}

}  // namespace memdecay::cuda
