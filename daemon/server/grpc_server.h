// The gRPC server on the control socket: services, health and reflection. Health answers from
// gRPC's own threads, whatever the reactor does.
// Thread: start and stop from one; handlers on gRPC's. Not here: what the services do.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/server/services.h"
#include "daemon/server/socket_directory.h"
#include "proto/contract/clock.h"

namespace grpc {
class Server;
}

namespace memdecay::server {

class GrpcServer {
 public:
  static absl::StatusOr<std::unique_ptr<GrpcServer>> start(
      const SocketDirectory& directory, std::vector<std::unique_ptr<grpc::Service>> services);
  ~GrpcServer();

  // Health says NOT_SERVING from now on.
  void announce_end();
  // Calls that are still open after `patience` are cancelled.
  void stop(Duration patience);

 private:
  GrpcServer(std::vector<std::unique_ptr<grpc::Service>> services,
             std::unique_ptr<grpc::Server> server);

  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace memdecay::server
