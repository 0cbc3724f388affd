// Incremental hashing by OpenSSL; see row_digest.h.
#include "adapters/reference/row_digest.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "adapters/reference/sampling.h"
#include "proto/contract/check.h"

namespace memdecay::reference {

void RowDigest::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

RowDigest::RowDigest() : context_(EVP_MD_CTX_new()) {
  MEMDECAY_CHECK(context_ != nullptr);
  MEMDECAY_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void RowDigest::add(std::span<const float> row) {
  MEMDECAY_CHECK(EVP_DigestUpdate(context_.get(), row.data(), row.size_bytes()) == 1);
  rows_.push_back(sha256_hex(row).substr(0, 16));
}

std::string RowDigest::hex() const {
  const std::unique_ptr<evp_md_ctx_st, Free> copy(EVP_MD_CTX_new());
  MEMDECAY_CHECK(copy != nullptr && EVP_MD_CTX_copy_ex(copy.get(), context_.get()) == 1);
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  MEMDECAY_CHECK(EVP_DigestFinal_ex(copy.get(), bytes, &size) == 1);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes), size));
}

}  // namespace memdecay::reference
