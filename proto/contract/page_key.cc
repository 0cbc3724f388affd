// SHA-256 and the encoding that is hashed for a page key (see page_key.h).
// Tags: 1 namespace (bytes, 32) · 2 parent (bytes, 32, or 0 for none) · 3 token ids (u32 list) ·
// 4 number of extra keys · per extra key 5 kind (text) · 6 value (bytes).
#include "proto/contract/page_key.h"

#include <openssl/evp.h>

#include "proto/contract/canonical.h"
#include "proto/contract/check.h"

namespace memdecay {
namespace {

constexpr std::string_view kDomain = "memdecay.page.v1";
constexpr char kHexDigits[] = "0123456789abcdef";

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

Digest sha256(std::string_view bytes) {
  Digest digest{};
  unsigned int length = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr);
  MEMDECAY_CHECK(done == 1 && length == digest.size());
  return digest;
}

std::string page_key_encoding(const NamespaceId& space, const std::optional<PageKey>& parent,
                              std::span<const TokenId> tokens, std::span<const ExtraKey> extras) {
  CanonicalWriter writer(kDomain);
  writer.bytes(1, space.bytes);
  writer.bytes(
      2, parent.has_value() ? std::span<const uint8_t>(parent->bytes) : std::span<const uint8_t>());
  writer.u32_list(3, tokens);
  writer.u32(4, static_cast<uint32_t>(extras.size()));
  for (const ExtraKey& extra : extras) {
    writer.text(5, extra.kind);
    writer.bytes(6, {reinterpret_cast<const uint8_t*>(extra.value.data()), extra.value.size()});
  }
  return writer.out();
}

PageKey page_key(const NamespaceId& space, const std::optional<PageKey>& parent,
                 std::span<const TokenId> tokens, std::span<const ExtraKey> extras) {
  return {sha256(page_key_encoding(space, parent, tokens, extras))};
}

std::string to_hex(const Digest& digest) {
  std::string hex;
  hex.reserve(digest.size() * 2);
  for (const uint8_t byte : digest) {
    hex.push_back(kHexDigits[byte >> 4]);
    hex.push_back(kHexDigits[byte & 15]);
  }
  return hex;
}

std::optional<Digest> digest_from_hex(std::string_view hex) {
  Digest digest{};
  if (hex.size() != digest.size() * 2) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    const int high = hex_value(hex[2 * i]);
    const int low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return digest;
}

}  // namespace memdecay
