// What every gRPC service needs: who calls, and errors as gRPC statuses. A status carries the
// ErrorDetail message as its binary details.
// Thread: any. Not here: the services (memory_service.cc, admin_service.cc).
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/statusor.h"
#include "daemon/ledger/ledger.h"
#include "daemon/server/edge.h"
#include "daemon/server/services.h"
#include "memdecay/v1/orchestrator.pb.h"

namespace memdecay::server {

grpc::Status to_grpc(const absl::Status& status);

// permission: no or wrong "memdecay-engine" and "memdecay-token-bin".
absl::StatusOr<Caller> caller_of(const grpc::CallbackServerContext& context, const Edge& edge);
// The same, and that the caller may use Admin.
absl::StatusOr<Caller> admin_of(const grpc::CallbackServerContext& context, const Edge& edge,
                                const ServiceFacts& facts);

// Counts the error and finishes with it.
void refuse(grpc::ServerUnaryReactor* reactor, Edge& edge, const absl::Status& status);

// The session that a name stands for; tenant 0: any. unknown_session, invalid_argument.
absl::StatusOr<SessionId> resolve(const ledger::Ledger& ledger, TenantId tenant,
                                  const v1::SessionName& name);

}  // namespace memdecay::server
