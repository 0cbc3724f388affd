// The gRPC services over one Edge. Each call is a token that an answer of the ledger, or an
// inspection between two steps, finishes; no gRPC thread waits.
// Thread: gRPC's; answers on the reactor's. Every call carries the engine's id and token.
// Not here: the server they are registered with (grpc_server.h).
#pragma once

#include <grpcpp/impl/codegen/service_type.h>

#include <memory>
#include <string>

#include "daemon/base/clock.h"
#include "daemon/server/config.h"
#include "daemon/server/edge.h"
#include "daemon/server/from_wire.h"
#include "daemon/server/recorder.h"

namespace memdecay::server {

// What the services tell about the daemon and ask of the configuration.
struct ServiceFacts {
  WireRules rules;
  Config config;
  std::string version;
  std::string death_notice;
  std::string metrics_address;
  uint32_t own_uid = 0;
  Instant started;
  uint64_t started_unix = 0;  // seconds
};

std::unique_ptr<grpc::Service> make_memory_service(Edge& edge, const ServiceFacts& facts,
                                                   const base::Clock& clock);
std::unique_ptr<grpc::Service> make_orchestrator_service(Edge& edge, const ServiceFacts& facts);
std::unique_ptr<grpc::Service> make_admin_service(Edge& edge, Recorder& recorder,
                                                  const ServiceFacts& facts,
                                                  const base::Clock& clock);

}  // namespace memdecay::server
