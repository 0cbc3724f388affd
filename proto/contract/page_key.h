// PageKey: the public name of a page's content, equal for everybody who computed the same tokens in
// the same namespace after the same pages. SHA-256, so that nobody can build two contents with one
// name. Golden vectors for other languages: proto/golden/page_keys.json.
// Thread: pure functions, any thread. SHA-256 comes from OpenSSL, in page_key.cc only.
// Not here: comparing token ids on a hit and shortened hashes for collision tests (daemon/ledger).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "proto/contract/ids.h"

namespace memdecay {

Digest sha256(std::string_view bytes);

// What else decides a page's bytes besides its tokens: a media item in full, a cache salt. Order
// counts; a page of plain text has none.
struct ExtraKey {
  std::string kind;   // "media", "salt", …
  std::string value;  // the identity in full (bytes), never shortened

  bool operator==(const ExtraKey&) const = default;
};

// The key of a page. `parent` is the key of the page before it; none only for the first page.
PageKey page_key(const NamespaceId& space, const std::optional<PageKey>& parent,
                 std::span<const TokenId> tokens, std::span<const ExtraKey> extras = {});
// The bytes that page_key hashes; for tests and other languages.
std::string page_key_encoding(const NamespaceId& space, const std::optional<PageKey>& parent,
                              std::span<const TokenId> tokens, std::span<const ExtraKey> extras);

// 64 lower-case hexadecimal digits, and back (nothing if it is not exactly that).
std::string to_hex(const Digest& digest);
std::optional<Digest> digest_from_hex(std::string_view hex);

}  // namespace memdecay
