// See grpc_call.h.
#include "daemon/server/grpc_call.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/report.h"
#include "daemon/server/to_wire.h"
#include "proto/contract/error.h"

namespace memdecay::server {
namespace {

grpc::StatusCode grpc_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return grpc::StatusCode::OK;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kLayoutRejected:
    case ErrorCode::kBudgetTooSmall:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::kUnknownSession:
    case ErrorCode::kUnknownPage:
    case ErrorCode::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case ErrorCode::kStaleEpoch:
    case ErrorCode::kNotSealed:
    case ErrorCode::kLeaseExpired:
    case ErrorCode::kVersionMismatch:
    case ErrorCode::kBusy:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorCode::kOutOfRange:
      return grpc::StatusCode::OUT_OF_RANGE;
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kPinBudget:
    case ErrorCode::kQuota:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorCode::kPermission:
      return grpc::StatusCode::PERMISSION_DENIED;
    case ErrorCode::kDataLoss:
      return grpc::StatusCode::DATA_LOSS;
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeviceLost:
      return grpc::StatusCode::UNAVAILABLE;
    case ErrorCode::kDeadline:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorCode::kUnsupported:
      return grpc::StatusCode::UNIMPLEMENTED;
    case ErrorCode::kInternal:
      return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::UNKNOWN;
}

absl::Status no_credentials(const char* there) {
  return make_error(ErrorCode::kPermission, "a call", there,
                    "attach through the handle socket and send memdecay-engine and "
                    "memdecay-token-bin of its Welcome");
}

}  // namespace

grpc::Status to_grpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(grpc_code(error_code(status)), std::string(status.message()),
                      error_to_wire(status).SerializeAsString());
}

absl::StatusOr<Caller> caller_of(const grpc::CallbackServerContext& context, const Edge& edge) {
  const auto& metadata = context.client_metadata();
  const auto engine_text = metadata.find("memdecay-engine");
  const auto token_text = metadata.find("memdecay-token-bin");
  if (engine_text == metadata.end() || token_text == metadata.end()) {
    return no_credentials("without engine and token");
  }
  EngineId engine;
  const grpc::string_ref& digits = engine_text->second;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), engine.value);
  Token token{};
  if (error != std::errc() || end != digits.data() + digits.size() ||
      token_text->second.size() != token.size()) {
    return no_credentials("with an engine or token of another form");
  }
  std::memcpy(token.data(), token_text->second.data(), token.size());
  return edge.engines().authenticate(engine, token);
}

absl::StatusOr<Caller> admin_of(const grpc::CallbackServerContext& context, const Edge& edge,
                                const ServiceFacts& facts) {
  absl::StatusOr<Caller> caller = caller_of(context, edge);
  if (!caller.ok() || caller->uid == facts.own_uid) return caller;
  const std::vector<uint32_t>& uids = facts.config.socket.admin_uids;
  if (std::find(uids.begin(), uids.end(), caller->uid) != uids.end()) return caller;
  return make_error(ErrorCode::kPermission, absl::StrCat("call Admin as uid ", caller->uid),
                    "it is neither the daemon's own nor in socket.admin_uids",
                    "add the uid to socket.admin_uids");
}

void refuse(grpc::ServerUnaryReactor* reactor, Edge& edge, const absl::Status& status) {
  edge.errors().count(status);
  reactor->Finish(to_grpc(status));
}

absl::StatusOr<SessionId> resolve(const ledger::Ledger& ledger, TenantId tenant,
                                  const v1::SessionName& name) {
  if (name.session() != 0) return SessionId{name.session()};
  if (name.name().empty()) {
    return make_error(ErrorCode::kInvalidArgument, "session", "neither id nor name", "give one");
  }
  const std::optional<SessionId> found = ledger::find_session(ledger, tenant, name.name());
  if (found.has_value()) return *found;
  return make_error(ErrorCode::kUnknownSession, absl::StrCat("session \"", name.name(), "\""),
                    "there is none of that name", "list the sessions");
}

}  // namespace memdecay::server
