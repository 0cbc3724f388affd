// CanonicalWriter: the byte string that is hashed for namespaces and content keys. Two programs
// that describe the same thing must write the same bytes, in any language, so a field is framed as
//   tag (u16 LE) · type (u8) · length (u32 LE) · that many bytes
// and nothing is ever left out or reordered. A field can therefore not be moved into its neighbour.
// Thread: a value. Not here: which fields there are (layout.cc, page_key.cc), hashing
// (page_key.cc).
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace memdecay {

class CanonicalWriter {
 public:
  enum class Type : uint8_t { kBytes = 1, kText = 2, kU32 = 3, kU64 = 4, kF64 = 5, kU32List = 6 };

  // `domain` separates kinds of strings ("memdecay.layout.v1"); it stands first, framed as tag 0.
  explicit CanonicalWriter(std::string_view domain) { text(0, domain); }

  void bytes(uint16_t tag, std::span<const uint8_t> value) {
    frame(tag, Type::kBytes, value.size());
    out_.append(value.begin(), value.end());
  }
  void text(uint16_t tag, std::string_view value) {
    frame(tag, Type::kText, value.size());
    out_.append(value);
  }
  void u32(uint16_t tag, uint32_t value) {
    frame(tag, Type::kU32, 4);
    little_endian(value, 4);
  }
  void u64(uint16_t tag, uint64_t value) {
    frame(tag, Type::kU64, 8);
    little_endian(value, 8);
  }
  // IEEE 754 binary64, little endian.
  void f64(uint16_t tag, double value) {
    frame(tag, Type::kF64, 8);
    little_endian(std::bit_cast<uint64_t>(value), 8);
  }
  void u32_list(uint16_t tag, std::span<const uint32_t> values) {
    frame(tag, Type::kU32List, values.size() * 4);
    for (const uint32_t value : values) little_endian(value, 4);
  }

  const std::string& out() const { return out_; }

 private:
  void frame(uint16_t tag, Type type, size_t length) {
    little_endian(tag, 2);
    little_endian(static_cast<uint8_t>(type), 1);
    little_endian(length, 4);
  }
  void little_endian(uint64_t value, int width) {
    for (int i = 0; i < width; ++i) out_.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }

  std::string out_;
};

}  // namespace memdecay
