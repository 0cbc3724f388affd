// See values.h.
#include "tests/scenario/values.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::scenario {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kTimeUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
                               {"m", 60},    {"min", 60},  {"h", 3600}};
constexpr Unit kSizeUnits[] = {
    {"", 1},     {"B", 1},    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
    {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};

// The number at the front and the unit behind it.
std::optional<std::pair<double, std::string_view>> number_and_unit(std::string_view word) {
  size_t end = 0;
  while (end < word.size() && (isdigit(static_cast<unsigned char>(word[end])) || word[end] == '.' ||
                               (end == 0 && (word[end] == '+' || word[end] == '-')))) {
    ++end;
  }
  const absl::StatusOr<double> number = parse_number(word.substr(0, end));
  if (!number.ok()) return std::nullopt;
  return std::pair(*number, word.substr(end));
}

}  // namespace

absl::Status bad_value(std::string what, std::string_view word, std::string todo) {
  return make_error(ErrorCode::kInvalidArgument, std::move(what),
                    absl::StrCat("'", as_absl(word), "'"), std::move(todo));
}

absl::StatusOr<int64_t> parse_integer(std::string_view word) {
  int64_t value = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end || word.empty()) {
    return bad_value("a whole number", word, "digits only");
  }
  return value;
}

absl::StatusOr<uint32_t> parse_count(std::string_view word) {
  const absl::StatusOr<int64_t> value = parse_integer(word);
  if (!value.ok()) return value.status();
  if (*value < 0 || *value > UINT32_MAX) return bad_value("a count", word, "0 to 2^32 - 1");
  return static_cast<uint32_t>(*value);
}

absl::StatusOr<double> parse_number(std::string_view word) {
  if (word.empty()) return bad_value("a number", word, "digits");
  const std::string copy(word);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);  // nan and inf on purpose: bad input is
  if (end != copy.c_str() + copy.size()) {               // part of the language
    return bad_value("a number", word, "digits");
  }
  return value;
}

absl::StatusOr<Duration> parse_duration(std::string_view word) {
  const auto parts = number_and_unit(word);
  if (parts) {
    for (const Unit& unit : kTimeUnits) {
      if (unit.name == parts->second) {
        return Duration{static_cast<int64_t>(std::llround(parts->first * unit.factor * 1e9))};
      }
    }
  }
  return bad_value("a duration", word, "like 50ms, 2s, 1h");
}

absl::StatusOr<int64_t> parse_bytes(std::string_view word) {
  const auto parts = number_and_unit(word);
  if (parts) {
    for (const Unit& unit : kSizeUnits) {
      if (unit.name == parts->second) return std::llround(parts->first * unit.factor);
    }
  }
  return bad_value("a size", word, "like 4096, 64KiB, 16MiB");
}

absl::StatusOr<std::pair<int64_t, int64_t>> parse_range(std::string_view word) {
  const size_t dots = word.find("..");
  const std::string_view left = word.substr(0, dots);
  const std::string_view right = dots == word.npos ? left : word.substr(dots + 2);
  const absl::StatusOr<int64_t> first = parse_integer(left);
  const absl::StatusOr<int64_t> last = parse_integer(right);
  if (!first.ok() || !last.ok()) return bad_value("a range", word, "like 0..7 or 3");
  if (*last < *first) return bad_value("a range", word, "first..last with first <= last");
  return std::pair(*first, *last);
}

bool looks_like_pages(std::string_view word) {
  const size_t colon = word.find(':');
  return colon != word.npos && colon > 0 && colon + 1 < word.size();
}

absl::StatusOr<PageSet> parse_pages(std::string_view word) {
  const size_t colon = word.find(':');
  if (!looks_like_pages(word)) return bad_value("pages", word, "like S:3, S:0..7, S:*");
  PageSet set{.session = std::string(word.substr(0, colon))};
  const std::string_view numbers = word.substr(colon + 1);
  if (numbers == "*") {
    set.all = true;
    return set;
  }
  const auto range = parse_range(numbers);
  if (!range.ok()) return range.status();
  if (range->first < 0 || range->second > UINT32_MAX)
    return bad_value("pages", word, "0 to 2^32-1");
  set.first = static_cast<uint32_t>(range->first);
  set.last = static_cast<uint32_t>(range->second);
  return set;
}

absl::StatusOr<TokenSpan> parse_span(std::string_view word, uint32_t page_tokens) {
  const size_t at = word.find('@');
  if (at == word.npos) {
    const absl::StatusOr<PageSet> pages = parse_pages(word);
    if (!pages.ok()) return bad_value("a span", word, "like S@24..87 or S:0..3");
    if (pages->all) return bad_value("a span", word, "name the pages: S:0..3");
    return TokenSpan{pages->session, {pages->first * page_tokens, (pages->last + 1) * page_tokens}};
  }
  const std::string_view numbers = word.substr(at + 1);
  const size_t dots = numbers.find("..");
  const absl::StatusOr<int64_t> first = parse_integer(numbers.substr(0, dots));
  const absl::StatusOr<int64_t> last =
      dots == numbers.npos ? first : parse_integer(numbers.substr(dots + 2));
  // Not parse_range: a span that runs backwards is bad input that the daemon must refuse.
  if (!first.ok() || !last.ok() || *first < 0 || *first > UINT32_MAX || *last < -1 ||
      *last >= UINT32_MAX) {
    return bad_value("a span", word, "like S@24..87 or S:0..3");
  }
  return TokenSpan{std::string(word.substr(0, at)),
                   {static_cast<uint32_t>(*first), static_cast<uint32_t>(*last + 1)}};
}

std::optional<Relation> parse_relation(std::string_view word) {
  if (word == "=" || word == "==") return Relation::kEqual;
  if (word == "<") return Relation::kLess;
  if (word == "<=") return Relation::kLessEqual;
  if (word == ">=") return Relation::kGreaterEqual;
  if (word == ">") return Relation::kGreater;
  if (word == "~") return Relation::kAbout;
  return std::nullopt;
}

bool holds(double left, Relation relation, double right) {
  switch (relation) {
    case Relation::kEqual:
      return left == right;
    case Relation::kLess:
      return left < right;
    case Relation::kLessEqual:
      return left <= right;
    case Relation::kGreaterEqual:
      return left >= right;
    case Relation::kGreater:
      return left > right;
    case Relation::kAbout:
      return std::fabs(left - right) <= 0.1 * std::fabs(right);
  }
  return false;
}

}  // namespace memdecay::scenario
