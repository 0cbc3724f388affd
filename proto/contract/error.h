// Errors as values: absl::Status that carries a typed ErrorDetail. The code decides what a caller
// does; the three sentences tell a person what was asked, what was there and what to do next.
// The detail travels as a Status payload, over gRPC as a trailer or message, over the C ABI as a
// code and a text. Codes are the project's vocabulary and never renamed.
// Thread: values, any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace memdecay {

enum class ErrorCode : uint8_t {
  kOk = 0,
  kInvalidArgument,
  kLayoutRejected,
  kUnknownSession,
  kUnknownPage,
  kStaleEpoch,
  kNotSealed,
  kOutOfRange,
  kResourceExhausted,
  kBudgetTooSmall,
  kPinBudget,
  kQuota,
  kLeaseExpired,
  kNotFound,
  kBusy,
  kPermission,
  kVersionMismatch,
  kDataLoss,
  kUnavailable,
  kDeadline,
  kDeviceLost,
  kUnsupported,
  kInternal,
};
inline constexpr int kErrorCodes = 23;

// "resource_exhausted" and so on; "ok" for kOk.
std::string_view error_name(ErrorCode code);
std::optional<ErrorCode> error_from_name(std::string_view name);

struct ErrorDetail {
  ErrorCode code = ErrorCode::kInternal;
  std::string asked;           // "4 pages for session 7"
  std::string there;           // "2 free, 6 pinned (session 3: 4, session 5: 2)"
  std::string todo;            // "unpin pages or raise device.pages"
  int64_t retry_after_ms = 0;  // > 0: try again after about this long
};

// The status for a detail. The message joins the three sentences.
absl::Status make_error(ErrorDetail detail);
absl::Status make_error(ErrorCode code, std::string asked, std::string there = {},
                        std::string todo = {});

// The code that a status carries: kOk for ok, the payload's code, or the closest code for a status
// that was made elsewhere.
ErrorCode error_code(const absl::Status& status);
ErrorDetail error_detail(const absl::Status& status);

}  // namespace memdecay
