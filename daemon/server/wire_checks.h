// Small checks that the messages of the control protocol share: bounds, names, spans, pages.
// Thread: pure functions, any thread. Errors: invalid_argument or out_of_range that names the
// field. Not here: which message needs which (from_wire*.cc).
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/limits.h"
#include "daemon/ledger/events.h"
#include "daemon/server/from_wire.h"
#include "memdecay/v1/common.pb.h"
#include "proto/contract/error.h"

namespace memdecay::server {

// What a message becomes, unless it is refused.
using Made = absl::StatusOr<ledger::Event>;

inline absl::Status refused(std::string field, std::string there, std::string todo) {
  return make_error(ErrorCode::kInvalidArgument, std::move(field), std::move(there),
                    std::move(todo));
}

inline absl::Status too_many(std::string field, size_t count, size_t most) {
  return refused(std::move(field), absl::StrCat(count, " entries"), absl::StrCat("at most ", most));
}

inline absl::Status check_name(const char* field, const std::string& name) {
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) != 0x7f;
  });
  if (name.size() <= base::limits::kNameBytes && printable) return absl::OkStatus();
  return refused(field, absl::StrCat(name.size(), " bytes or control characters"),
                 absl::StrCat("plain text of at most ", base::limits::kNameBytes, " bytes"));
}

inline ledger::Span span(const v1::Span& wire) {
  return {.begin = wire.begin(), .end = wire.end()};
}

inline absl::StatusOr<ledger::Span> checked_span(const v1::Span& wire) {
  if (wire.begin() < wire.end()) return span(wire);
  return refused("span", absl::StrCat("[", wire.begin(), ", ", wire.end(), ")"),
                 "a span is half open and not empty");
}

inline Fence fence(const v1::Fence& wire) {
  return {.member = wire.member(), .word = wire.word(), .value = wire.value()};
}

inline absl::StatusOr<RegionId> region(uint32_t number) {
  if (number < base::limits::kRegions) return static_cast<RegionId>(number);
  return refused("region", absl::StrCat(number), absl::StrCat("0 to ", base::limits::kRegions - 1));
}

inline absl::StatusOr<Mode> mode(v1::Mode wire, const WireRules& rules) {
  if (wire == v1::MODE_UNSPECIFIED) return rules.mode;
  if (wire == v1::MODE_EXACT) return Mode::kExact;
  if (wire == v1::MODE_LOSSY) return Mode::kLossy;
  return refused("mode", absl::StrCat(static_cast<int>(wire)), "exact or lossy");
}

// A range of pages whose end is a page index, too.
inline absl::Status check_range(uint32_t first, uint32_t pages) {
  if (pages == 0) return refused("pages", "0", "name at least one page");
  if (pages > base::limits::kPagesARequest)
    return too_many("pages", pages, base::limits::kPagesARequest);
  if (first > base::limits::kPagesASession) {
    return make_error(ErrorCode::kOutOfRange, absl::StrCat("page ", first),
                      absl::StrCat("a session has at most ", base::limits::kPagesASession), "");
  }
  return absl::OkStatus();
}

inline absl::StatusOr<std::vector<uint32_t>> numbers(
    const char* field, const google::protobuf::RepeatedField<uint32_t>& wire) {
  if (static_cast<size_t>(wire.size()) > base::limits::kPagesARequest) {
    return too_many(field, static_cast<size_t>(wire.size()), base::limits::kPagesARequest);
  }
  return std::vector<uint32_t>(wire.begin(), wire.end());
}

}  // namespace memdecay::server
