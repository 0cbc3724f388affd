// SipHash-2-4 as its paper states it (see keyed_hash.h).
#include "daemon/base/keyed_hash.h"

#include <bit>
#include <cstddef>

namespace memdecay::base {
namespace {

struct Words {
  uint64_t a, b, c, d;

  void round() {
    a += b;
    c += d;
    b = std::rotl(b, 13) ^ a;
    d = std::rotl(d, 16) ^ c;
    a = std::rotl(a, 32);
    c += b;
    a += d;
    b = std::rotl(b, 17) ^ c;
    d = std::rotl(d, 21) ^ a;
    c = std::rotl(c, 32);
  }
  void take(uint64_t word) {
    d ^= word;
    round();
    round();
    a ^= word;
  }
};

uint64_t word_at(std::span<const uint8_t> bytes) {
  uint64_t word = 0;
  for (size_t i = bytes.size(); i-- > 0;) word = word << 8 | bytes[i];
  return word;
}

}  // namespace

uint64_t keyed_hash(const HashKey& key, std::span<const uint8_t> bytes) {
  Words words{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
              key[1] ^ 0x7465646279746573};
  const uint64_t length = bytes.size();
  while (bytes.size() >= 8) {
    words.take(word_at(bytes.first(8)));
    bytes = bytes.subspan(8);
  }
  words.take(length << 56 | word_at(bytes));
  words.c ^= 0xff;
  for (int i = 0; i < 4; ++i) words.round();
  return words.a ^ words.b ^ words.c ^ words.d;
}

}  // namespace memdecay::base
