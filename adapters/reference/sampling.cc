// The implementation of sampling.h; hashing by OpenSSL.
#include "adapters/reference/sampling.h"

#include <openssl/sha.h>

namespace memdecay::reference {

TokenId greedy_token(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return static_cast<TokenId>(best);
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string sha256_hex(std::span<const float> logits) { return sha256_hex(std::as_bytes(logits)); }

}  // namespace memdecay::reference
