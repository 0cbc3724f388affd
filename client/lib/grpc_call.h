// What every gRPC call of the client needs: a channel over the control socket, the caller's
// identity, and refusals as statuses with their detail. Include it in few files: it brings gRPC's
// headers. Thread: any. Not here: the engine's stream (stream_link.h).
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/contract/clock.h"
#include "proto/contract/handle_frames.h"
#include "proto/contract/ids.h"

namespace memdecay::client {

// unavailable: nobody serves there within `timeout`.
absl::StatusOr<std::shared_ptr<grpc::Channel>> connect_channel(const std::string& control_path,
                                                               Duration timeout);
gpr_timespec deadline_in(Duration timeout);
void identify(grpc::ClientContext& context, EngineId engine, const Token& token);
// `asked` is for statuses that do not come from the daemon itself.
absl::Status status_of(const grpc::Status& status, const char* asked);

}  // namespace memdecay::client
