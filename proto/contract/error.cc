// Error names, the Status payload and its reading back (see error.h). The payload is five
// length-free fields joined by a unit separator: it never leaves the process.
#include "proto/contract/error.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace memdecay {
namespace {

constexpr char kPayloadUrl[] = "memdecay/error";
constexpr char kSeparator = '\x1f';

struct CodeRow {
  std::string_view name;
  absl::StatusCode status;
};

constexpr std::array<CodeRow, kErrorCodes> kRows = {{
    {"ok", absl::StatusCode::kOk},
    {"invalid_argument", absl::StatusCode::kInvalidArgument},
    {"layout_rejected", absl::StatusCode::kInvalidArgument},
    {"unknown_session", absl::StatusCode::kNotFound},
    {"unknown_page", absl::StatusCode::kNotFound},
    {"stale_epoch", absl::StatusCode::kFailedPrecondition},
    {"not_sealed", absl::StatusCode::kFailedPrecondition},
    {"out_of_range", absl::StatusCode::kOutOfRange},
    {"resource_exhausted", absl::StatusCode::kResourceExhausted},
    {"budget_too_small", absl::StatusCode::kFailedPrecondition},
    {"pin_budget", absl::StatusCode::kResourceExhausted},
    {"quota", absl::StatusCode::kResourceExhausted},
    {"lease_expired", absl::StatusCode::kFailedPrecondition},
    {"not_found", absl::StatusCode::kNotFound},
    {"busy", absl::StatusCode::kAborted},
    {"permission", absl::StatusCode::kPermissionDenied},
    {"version_mismatch", absl::StatusCode::kFailedPrecondition},
    {"data_loss", absl::StatusCode::kDataLoss},
    {"unavailable", absl::StatusCode::kUnavailable},
    {"deadline", absl::StatusCode::kDeadlineExceeded},
    {"device_lost", absl::StatusCode::kDataLoss},
    {"unsupported", absl::StatusCode::kUnimplemented},
    {"internal", absl::StatusCode::kInternal},
}};

std::string sentence(const ErrorDetail& detail) {
  std::string text(error_name(detail.code));
  std::string_view before = ": ";
  for (const std::string* part : {&detail.asked, &detail.there, &detail.todo}) {
    if (part->empty()) continue;
    text.append(before).append(*part);
    before = "; ";
  }
  return text;
}

}  // namespace

std::string_view error_name(ErrorCode code) { return kRows[static_cast<size_t>(code)].name; }

std::optional<ErrorCode> error_from_name(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<ErrorCode>(i);
  }
  return std::nullopt;
}

absl::Status make_error(ErrorDetail detail) {
  if (detail.code == ErrorCode::kOk) return absl::OkStatus();
  absl::Status status(kRows[static_cast<size_t>(detail.code)].status, sentence(detail));
  const std::string separator(1, kSeparator);
  status.SetPayload(kPayloadUrl,
                    absl::Cord(absl::StrCat(static_cast<int>(detail.code), separator, detail.asked,
                                            separator, detail.there, separator, detail.todo,
                                            separator, detail.retry_after_ms)));
  return status;
}

absl::Status make_error(ErrorCode code, std::string asked, std::string there, std::string todo) {
  return make_error(ErrorDetail{
      .code = code, .asked = std::move(asked), .there = std::move(there), .todo = std::move(todo)});
}

ErrorDetail error_detail(const absl::Status& status) {
  if (status.ok()) return {.code = ErrorCode::kOk};
  const auto payload = status.GetPayload(kPayloadUrl);
  if (payload.has_value()) {
    const std::vector<std::string> fields = absl::StrSplit(std::string(*payload), kSeparator);
    int code = 0;
    int64_t retry_after_ms = 0;
    if (fields.size() == 5 && absl::SimpleAtoi(fields[0], &code) &&
        absl::SimpleAtoi(fields[4], &retry_after_ms) && code > 0 && code < kErrorCodes) {
      return {static_cast<ErrorCode>(code), fields[1], fields[2], fields[3], retry_after_ms};
    }
  }
  ErrorDetail detail{.code = ErrorCode::kInternal, .asked = std::string(status.message())};
  for (size_t i = 1; i < kRows.size(); ++i) {
    if (kRows[i].status == status.code()) {
      detail.code = static_cast<ErrorCode>(i);
      break;
    }
  }
  return detail;
}

ErrorCode error_code(const absl::Status& status) { return error_detail(status).code; }

}  // namespace memdecay
