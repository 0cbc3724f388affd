// Admin: memdecayctl's connection. It attaches by the handle socket like an engine, because that is
// how the daemon learns who calls, and then makes unary calls of the Admin service.
// Thread: one. Not here: printing (render.h), arguments (arguments.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "memdecay/v1/admin.pb.h"
#include "proto/contract/clock.h"

namespace memdecay::ctl {

class Admin {
 public:
  // `directory`: where the sockets are; empty: the usual places. unavailable, permission.
  static absl::StatusOr<std::unique_ptr<Admin>> connect(const std::string& directory,
                                                        Duration timeout);
  virtual ~Admin() = default;

  virtual absl::StatusOr<v1::GetStatusResponse> status() = 0;
  virtual absl::StatusOr<v1::ListSessionsResponse> sessions() = 0;
  virtual absl::StatusOr<v1::ListPagesResponse> pages(const v1::ListPagesRequest& request) = 0;
  virtual absl::StatusOr<v1::ExplainResponse> explain(const v1::ExplainRequest& request) = 0;
  virtual absl::StatusOr<v1::CheckResponse> check() = 0;
  virtual absl::StatusOr<v1::AdminPinResponse> pin(const v1::AdminPinRequest& request) = 0;
  virtual absl::StatusOr<v1::AdminUnpinResponse> unpin(const v1::AdminUnpinRequest& request) = 0;
  virtual absl::StatusOr<v1::AdminEvictResponse> evict(const v1::AdminEvictRequest& request) = 0;
  virtual absl::StatusOr<v1::AdminRestoreResponse> restore(
      const v1::AdminRestoreRequest& request) = 0;
  virtual absl::StatusOr<v1::DropResponse> drop(const v1::DropRequest& request) = 0;
  virtual absl::StatusOr<v1::GetConfigResponse> config() = 0;
  virtual absl::StatusOr<v1::ListDecisionsResponse> decisions(
      const v1::ListDecisionsRequest& request) = 0;
  virtual absl::StatusOr<v1::GetFiguresResponse> figures() = 0;
  // Hands every message of a recording to `take` until the daemon ends it or `take` says stop: then
  // it is ended, and that is no error. Without the timeout of the other calls.
  enum class Go : uint8_t { kOn, kStop };
  virtual absl::Status record(const v1::RecordRequest& request,
                              absl::FunctionRef<Go(const v1::RecordResponse&)> take) = 0;
};

}  // namespace memdecay::ctl
