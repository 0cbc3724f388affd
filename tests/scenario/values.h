// Values of the scenario language: pages "S:0..7", spans "S@24..87", durations "50ms", sizes
// "64KiB", numbers, ranges "1..100". Strict: a value that is not exactly one is an error.
// Thread: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/ledger/events.h"
#include "proto/contract/clock.h"

namespace memdecay::scenario {

struct PageSet {
  std::string session;
  bool all = false;    // S:*
  uint32_t first = 0;  // else first..last, both in it
  uint32_t last = 0;
};

struct TokenSpan {
  std::string session;
  ledger::Span span;
};

absl::StatusOr<PageSet> parse_pages(std::string_view word);
bool looks_like_pages(std::string_view word);
// "S@24..87", or pages, which stand for all their tokens.
absl::StatusOr<TokenSpan> parse_span(std::string_view word, uint32_t page_tokens);
absl::StatusOr<Duration> parse_duration(std::string_view word);
// Bytes; a sign is allowed ("+16MiB").
absl::StatusOr<int64_t> parse_bytes(std::string_view word);
absl::StatusOr<int64_t> parse_integer(std::string_view word);
absl::StatusOr<uint32_t> parse_count(std::string_view word);
absl::StatusOr<double> parse_number(std::string_view word);
// "1..100", or one number.
absl::StatusOr<std::pair<int64_t, int64_t>> parse_range(std::string_view word);

// "= 3", "< 5", "~ 2.5".
enum class Relation : uint8_t { kEqual, kLess, kLessEqual, kGreaterEqual, kGreater, kAbout };
std::optional<Relation> parse_relation(std::string_view word);
bool holds(double left, Relation relation, double right);

absl::Status bad_value(std::string what, std::string_view word, std::string todo);

}  // namespace memdecay::scenario
