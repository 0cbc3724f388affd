// Channels, identity and statuses of gRPC calls; see grpc_call.h.
// Thread: any.
#include "client/lib/grpc_call.h"

#include "absl/strings/str_cat.h"
#include "client/lib/convert.h"
#include "client/lib/limits.h"
#include "proto/contract/error.h"

namespace memdecay::client {
namespace {

ErrorCode nearest(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ErrorCode::kDeadline;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return ErrorCode::kPermission;
    case grpc::StatusCode::UNIMPLEMENTED:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> connect_channel(const std::string& control_path,
                                                               Duration timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // A channel of an earlier daemon must not lend us its back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
      "unix:" + control_path, grpc::InsecureChannelCredentials(), arguments);
  // A Unix socket that refuses will not change its mind by waiting: the caller tries again later.
  const gpr_timespec deadline = deadline_in(timeout);
  for (;;) {
    const grpc_connectivity_state state = channel->GetState(true);
    if (state == GRPC_CHANNEL_READY) return channel;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) break;
    if (!channel->WaitForStateChange(state, deadline)) break;
  }
  return make_error({ErrorCode::kUnavailable, absl::StrCat("connect to ", control_path),
                     "nobody serves there", "see that memdecayd runs", 100});
}

gpr_timespec deadline_in(Duration timeout) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(timeout.nanoseconds, GPR_TIMESPAN));
}

void identify(grpc::ClientContext& context, EngineId engine, const Token& token) {
  context.AddMetadata("memdecay-engine", std::to_string(engine.value));
  context.AddMetadata("memdecay-token-bin",
                      std::string(reinterpret_cast<const char*>(token.data()), token.size()));
}

absl::Status status_of(const grpc::Status& status, const char* asked) {
  if (status.ok()) return absl::OkStatus();
  v1::ErrorDetail detail;
  if (!status.error_details().empty() && detail.ParseFromString(status.error_details())) {
    return make_error(error_of(detail));
  }
  return make_error({nearest(status.error_code()), asked, status.error_message(),
                     "see that memdecayd runs; the client connects again by itself", 100});
}

}  // namespace memdecay::client
