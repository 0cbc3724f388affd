// Reading and printing single values (see values.h).
#include "daemon/base/values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/text.h"

namespace memdecay::base {
namespace {

absl::Status wrong(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", as_absl(text), "\" ", as_absl(why)));
}

struct Unit {
  std::string_view name;
  uint64_t bytes;
};

constexpr std::array<Unit, 9> kUnits = {{
    {"B", 1},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"KiB", uint64_t{1} << 10},
    {"MiB", uint64_t{1} << 20},
    {"GiB", uint64_t{1} << 30},
    {"TiB", uint64_t{1} << 40},
}};

}  // namespace

absl::StatusOr<uint64_t> parse_count(std::string_view text, Bounds bounds) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return wrong(text, "is no whole number");
  }
  if (value < bounds.least || value > bounds.most) {
    return wrong(text, absl::StrCat("is not within ", bounds.least, " and ", bounds.most));
  }
  return value;
}

absl::StatusOr<int32_t> parse_signed(std::string_view text) {
  int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return wrong(text, "is no whole number");
  }
  return value;
}

absl::StatusOr<uint64_t> parse_size(std::string_view text) {
  uint64_t value = 0;
  const char* const stop = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), stop, value);
  constexpr std::string_view kHow =
      "is no size: write a whole number with B, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, "
      "TiB (powers of 1024)";
  if (error != std::errc()) return wrong(text, kHow);
  if (end == stop) return value;
  const std::string_view unit_name(end, static_cast<size_t>(stop - end));
  for (const Unit& unit : kUnits) {
    if (unit.name != unit_name) continue;
    if (value > std::numeric_limits<uint64_t>::max() / unit.bytes) {
      return wrong(text, "is too large");
    }
    return value * unit.bytes;
  }
  return wrong(text, kHow);
}

std::string print_size(uint64_t bytes) {
  // The largest unit that loses nothing.
  const Unit* best = nullptr;
  for (const Unit& unit : kUnits) {
    if (unit.bytes == 1 || bytes == 0 || bytes % unit.bytes != 0) continue;
    if (best == nullptr || unit.bytes > best->bytes) best = &unit;
  }
  if (best == nullptr) return absl::StrCat(bytes);
  return absl::StrCat(bytes / best->bytes, as_absl(best->name));
}

absl::StatusOr<bool> parse_switch(std::string_view text) {
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  return wrong(text, "is neither true nor false");
}

absl::StatusOr<double> parse_real(std::string_view text, Infinite infinite) {
  if (infinite == Infinite::kAllowed && (text == "inf" || text == ".inf")) {
    return std::numeric_limits<double>::infinity();
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return wrong(text, "is no finite number");
  }
  return value;
}

std::string print_real(double value) {
  if (std::isinf(value)) return ".inf";
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), end) : std::string("0");
}

std::vector<std::string_view> list_words(std::string_view text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  std::vector<std::string_view> words;
  for (const absl::string_view part : absl::StrSplit(as_absl(text), absl::ByAnyChar(", "))) {
    if (!part.empty()) words.emplace_back(part.data(), part.size());
  }
  return words;
}

absl::StatusOr<uint32_t> parse_octal(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size() || text.size() < 3 ||
      text.size() > 4 || value > 0777) {
    return wrong(text, "is no file mode: write three or four octal digits, such as 0660");
  }
  if ((value & 0002) != 0) return wrong(text, "would let every user of the machine in");
  return value;
}

}  // namespace memdecay::base
