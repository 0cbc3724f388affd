// Values of keys as text: numbers, sizes, switches. Strict, because a wrong reading
// of "10GB" is found only when the machine is out of memory. Thread: pure functions, any thread.
// Errors: invalid_argument whose message is a sentence about the value; the caller adds key and
// line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace memdecay::base {

struct Bounds {
  uint64_t least = 0;
  uint64_t most = UINT64_MAX;
};

// Decimal digits only.
absl::StatusOr<uint64_t> parse_count(std::string_view text, Bounds bounds);
absl::StatusOr<int32_t> parse_signed(std::string_view text);
// Bytes: "4096", "64KiB", "10GB" (10^10), "10GiB" (10 * 2^30). "10G" and "100 gigs" are refused.
absl::StatusOr<uint64_t> parse_size(std::string_view text);
std::string print_size(uint64_t bytes);
// true, false, yes, no, on, off, 1, 0.
absl::StatusOr<bool> parse_switch(std::string_view text);
// A finite number; "inf" where `infinite` allows it.
enum class Infinite : uint8_t { kRefused, kAllowed };
absl::StatusOr<double> parse_real(std::string_view text, Infinite infinite);
std::string print_real(double value);
// "[a, b]" or "a,b": its words; parts of `text`.
std::vector<std::string_view> list_words(std::string_view text);
// "0660": three or four octal digits.
absl::StatusOr<uint32_t> parse_octal(std::string_view text);

}  // namespace memdecay::base
