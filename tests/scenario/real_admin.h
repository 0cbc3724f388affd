// RealAdmin: the runner's own connection to memdecayd-lab: Admin, Orchestrator and Lab. It attaches
// by the handle socket like everybody else, so the daemon counts it as one more engine.
// Thread: any; calls may be made at the same time. Errors: what the daemon answered.
// Not here: engines (real_world.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "memdecay/v1/admin.pb.h"
#include "memdecay/v1/lab.pb.h"
#include "memdecay/v1/orchestrator.pb.h"
#include "proto/contract/clock.h"

namespace memdecay::scenario {

class RealAdmin {
 public:
  static absl::StatusOr<std::unique_ptr<RealAdmin>> connect(const std::string& directory);
  virtual ~RealAdmin() = default;

  virtual absl::Status call(const v1::GetStatusRequest& request, v1::GetStatusResponse& out) = 0;
  virtual absl::Status call(const v1::ListSessionsRequest& request,
                            v1::ListSessionsResponse& out) = 0;
  virtual absl::Status call(const v1::ListPagesRequest& request, v1::ListPagesResponse& out) = 0;
  virtual absl::Status call(const v1::ExplainRequest& request, v1::ExplainResponse& out) = 0;
  virtual absl::Status call(const v1::CheckRequest& request, v1::CheckResponse& out) = 0;
  virtual absl::Status call(const v1::AdminPinRequest& request, v1::AdminPinResponse& out) = 0;
  virtual absl::Status call(const v1::AdminUnpinRequest& request, v1::AdminUnpinResponse& out) = 0;
  virtual absl::Status call(const v1::AdminEvictRequest& request, v1::AdminEvictResponse& out) = 0;
  virtual absl::Status call(const v1::AdminRestoreRequest& request,
                            v1::AdminRestoreResponse& out) = 0;
  virtual absl::Status call(const v1::DropRequest& request, v1::DropResponse& out) = 0;
  virtual absl::Status call(const v1::ApplyRequest& request, v1::ApplyResponse& out) = 0;
  virtual absl::Status call(const v1::HoldRequest& request, v1::HoldResponse& out) = 0;
  virtual absl::Status call(const v1::FinishRequest& request, v1::FinishResponse& out) = 0;
  virtual absl::Status call(const v1::TickRequest& request, v1::TickResponse& out) = 0;
  virtual absl::Status call(const v1::SettleRequest& request, v1::SettleResponse& out) = 0;
  virtual absl::Status call(const v1::PressureRequest& request, v1::PressureResponse& out) = 0;
  virtual absl::Status call(const v1::SamplesRequest& request, v1::SamplesResponse& out) = 0;
  virtual absl::Status call(const v1::FaultRequest& request, v1::FaultResponse& out) = 0;
  virtual absl::Status call(const v1::VictimsRequest& request, v1::VictimsResponse& out) = 0;
  virtual absl::Status call(const v1::ReloadRequest& request, v1::ReloadResponse& out) = 0;
  virtual absl::Status call(const v1::ReplicaRequest& request, v1::ReplicaResponse& out) = 0;
  virtual absl::Status call(const v1::FootprintRequest& request, v1::FootprintResponse& out) = 0;
};

}  // namespace memdecay::scenario
