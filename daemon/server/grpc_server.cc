// See grpc_server.h.
#include "daemon/server/grpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/stat.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/limits.h"
#include "proto/contract/error.h"

namespace memdecay::server {

GrpcServer::GrpcServer(std::vector<std::unique_ptr<grpc::Service>> services,
                       std::unique_ptr<grpc::Server> server)
    : services_(std::move(services)), server_(std::move(server)) {}

GrpcServer::~GrpcServer() { stop(Duration{}); }

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::start(
    const SocketDirectory& directory, std::vector<std::unique_ptr<grpc::Service>> services) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  const std::string path = directory.control_path();
  int port = 0;
  builder.AddListeningPort(absl::StrCat("unix:", path), grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(static_cast<int>(base::limits::kMessageBytes));
  builder.SetMaxSendMessageSize(static_cast<int>(base::limits::kMessageBytes));
  for (const auto& service : services) builder.RegisterService(service.get());
  // gRPC makes the socket file itself: nobody but us until it has its group and mode.
  const mode_t before = ::umask(0177);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ::umask(before);
  if (server == nullptr || port == 0) {
    return make_error(ErrorCode::kUnavailable, absl::StrCat("serve on ", path),
                      "the socket cannot be bound", "check owner and mode of its folder");
  }
  if (absl::Status status = directory.set_access(path); !status.ok()) return status;
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(services), std::move(server)));
}

void GrpcServer::announce_end() {
  if (auto* const health = server_->GetHealthCheckService()) health->SetServingStatus(false);
}

void GrpcServer::stop(Duration patience) {
  if (server_ == nullptr) return;
  const gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                          gpr_time_from_nanos(patience.nanoseconds, GPR_TIMESPAN));
  server_->Shutdown(until);
  server_->Wait();
  server_.reset();
}

}  // namespace memdecay::server
