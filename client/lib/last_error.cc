// The last error of this thread, and the names of the C interface's words.
// Thread: each its own; see last_error.h.
#include "client/lib/last_error.h"

#include <string>

#include "proto/contract/error.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::client {
namespace {

struct LastError {
  ErrorDetail detail{ErrorCode::kOk, {}, {}, {}, 0};
  std::string message = "no call has failed on this thread";
  memdecay_error shown{};
};

LastError& last_error() {
  thread_local LastError last;
  return last;
}

}  // namespace

memdecay_code report(const absl::Status& status) {
  if (status.ok()) return MEMDECAY_OK;
  LastError& last = last_error();
  last.detail = error_detail(status);
  last.message.assign(status.message().data(), status.message().size());
  return static_cast<memdecay_code>(last.detail.code);
}

memdecay_code null_argument(const char* call) {
  return report(make_error(ErrorCode::kInvalidArgument, call, "a pointer is NULL or a size unset",
                           "set structs up by their _INIT macro and give every pointer"));
}

}  // namespace memdecay::client

extern "C" {

const memdecay_error* memdecay_last_error(void) {
  auto& last = memdecay::client::last_error();
  last.shown = {static_cast<memdecay_code>(last.detail.code),
                last.message.c_str(),
                last.detail.asked.c_str(),
                last.detail.there.c_str(),
                last.detail.todo.c_str(),
                last.detail.retry_after_ms};
  return &last.shown;
}

// Names are literals, so data() ends with a zero.
const char* memdecay_code_name(memdecay_code code) {
  const int number = code;
  const bool known = number >= 0 && number < memdecay::kErrorCodes;
  return memdecay::error_name(known ? static_cast<memdecay::ErrorCode>(number)
                                    : memdecay::ErrorCode::kInternal)
      .data();
}

const char* memdecay_reason_name(uint32_t reason) {
  if (reason >= memdecay::kReasons) return "unknown";
  return memdecay::reason_name(static_cast<memdecay::Reason>(reason)).data();
}

const char* memdecay_version(void) { return "0.1.0"; }

}  // extern "C"
