// See oracle.h.
#include "tests/scenario/oracle.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace memdecay::scenario {
namespace {

// splitmix64: a bijection that spreads every bit.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return mix(hash);
}

}  // namespace

TokenId token_of(std::string_view key, uint32_t position) {
  return static_cast<TokenId>(mix(hash_text(key) ^ mix(position)) & 0x7fffffff);
}

std::vector<TokenId> tokens_of(std::string_view key, uint32_t first_page, uint32_t pages,
                               uint32_t page_tokens) {
  std::vector<TokenId> tokens;
  tokens.reserve(size_t{pages} * page_tokens);
  const uint64_t base = hash_text(key);
  for (uint32_t i = 0; i < pages * page_tokens; ++i) {
    const uint64_t position = uint64_t{first_page} * page_tokens + i;
    tokens.push_back(static_cast<TokenId>(mix(base ^ mix(position)) & 0x7fffffff));
  }
  return tokens;
}

uint64_t extend_past(uint64_t past, ContentPrint seen) { return mix(past * 3 + seen + 1); }

ContentPrint content_of(uint64_t past, const std::vector<TokenId>& tokens, std::string_view extra) {
  uint64_t hash = mix(past ^ 0x636f6e74656e74);
  for (const TokenId token : tokens) hash = mix(hash ^ token);
  if (!extra.empty()) hash = mix(hash ^ hash_text(extra));
  return hash == 0 ? 1 : hash;
}

std::string pattern(ContentPrint content, uint64_t offset, uint64_t bytes) {
  std::string out(bytes, '\0');
  for (uint64_t i = 0; i < bytes;) {
    const uint64_t at = offset + i;
    const uint64_t word = mix(content ^ mix(at / 8));
    const uint64_t skip = at % 8;
    const uint64_t count = std::min<uint64_t>(8 - skip, bytes - i);
    std::memcpy(out.data() + i, reinterpret_cast<const char*>(&word) + skip, count);
    i += count;
  }
  return out;
}

std::string difference(std::string_view actual, std::string_view expected) {
  if (actual.size() != expected.size()) {
    return absl::StrCat(actual.size(), " bytes instead of ", expected.size());
  }
  size_t wrong = 0;
  size_t first = actual.size();
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return {};
  return absl::StrFormat("%d of %d bytes differ, first at %d: %02x, expected %02x", wrong,
                         actual.size(), first, static_cast<uint8_t>(actual[first]),
                         static_cast<uint8_t>(expected[first]));
}

}  // namespace memdecay::scenario
