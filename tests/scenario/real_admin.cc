// RealAdmin over gRPC; the only file of the runner that includes it. See real_admin.h.
#include "tests/scenario/real_admin.h"

#include <utility>

#include "client/lib/grpc_call.h"
#include "client/lib/handle_link.h"
#include "client/lib/steady_clock.h"
#include "memdecay/v1/admin.grpc.pb.h"
#include "memdecay/v1/lab.grpc.pb.h"
#include "memdecay/v1/orchestrator.grpc.pb.h"

namespace memdecay::scenario {
namespace {

using client::HandleLink;
constexpr Duration kTimeout = Duration::from_seconds(70);

class GrpcRealAdmin final : public RealAdmin {
 public:
  GrpcRealAdmin(HandleLink handles, const std::shared_ptr<grpc::Channel>& channel)
      : handles_(std::move(handles)),
        admin_(v1::Admin::NewStub(channel)),
        orchestrator_(v1::Orchestrator::NewStub(channel)),
        lab_(v1::Lab::NewStub(channel)) {}
  ~GrpcRealAdmin() override { handles_.say_goodbye(); }

  absl::Status call(const v1::GetStatusRequest& request, v1::GetStatusResponse& out) override {
    return on(*admin_, &v1::Admin::Stub::GetStatus, request, out);
  }
  absl::Status call(const v1::ListSessionsRequest& request,
                    v1::ListSessionsResponse& out) override {
    return on(*admin_, &v1::Admin::Stub::ListSessions, request, out);
  }
  absl::Status call(const v1::ListPagesRequest& request, v1::ListPagesResponse& out) override {
    return on(*admin_, &v1::Admin::Stub::ListPages, request, out);
  }
  absl::Status call(const v1::ExplainRequest& request, v1::ExplainResponse& out) override {
    return on(*admin_, &v1::Admin::Stub::Explain, request, out);
  }
  absl::Status call(const v1::CheckRequest& request, v1::CheckResponse& out) override {
    return on(*admin_, &v1::Admin::Stub::Check, request, out);
  }
  absl::Status call(const v1::AdminPinRequest& request, v1::AdminPinResponse& out) override {
    return on(*admin_, &v1::Admin::Stub::Pin, request, out);
  }
  absl::Status call(const v1::AdminUnpinRequest& request, v1::AdminUnpinResponse& out) override {
    return on(*admin_, &v1::Admin::Stub::Unpin, request, out);
  }
  absl::Status call(const v1::AdminEvictRequest& request, v1::AdminEvictResponse& out) override {
    return on(*admin_, &v1::Admin::Stub::Evict, request, out);
  }
  absl::Status call(const v1::AdminRestoreRequest& request,
                    v1::AdminRestoreResponse& out) override {
    return on(*admin_, &v1::Admin::Stub::Restore, request, out);
  }
  absl::Status call(const v1::DropRequest& request, v1::DropResponse& out) override {
    return on(*admin_, &v1::Admin::Stub::Drop, request, out);
  }
  absl::Status call(const v1::ApplyRequest& request, v1::ApplyResponse& out) override {
    return on(*orchestrator_, &v1::Orchestrator::Stub::Apply, request, out);
  }
  absl::Status call(const v1::HoldRequest& request, v1::HoldResponse& out) override {
    return on(*lab_, &v1::Lab::Stub::Hold, request, out);
  }
  absl::Status call(const v1::FinishRequest& request, v1::FinishResponse& out) override {
    return on(*lab_, &v1::Lab::Stub::Finish, request, out);
  }
  absl::Status call(const v1::TickRequest& request, v1::TickResponse& out) override {
    return on(*lab_, &v1::Lab::Stub::Tick, request, out);
  }
  absl::Status call(const v1::SettleRequest& request, v1::SettleResponse& out) override {
    return on(*lab_, &v1::Lab::Stub::Settle, request, out);
  }
  absl::Status call(const v1::PressureRequest& request, v1::PressureResponse& out) override {
    return on(*lab_, &v1::Lab::Stub::Pressure, request, out);
  }
  absl::Status call(const v1::SamplesRequest& request, v1::SamplesResponse& out) override {
    return on(*lab_, &v1::Lab::Stub::Samples, request, out);
  }
  absl::Status call(const v1::FaultRequest& request, v1::FaultResponse& out) override {
    return on(*lab_, &v1::Lab::Stub::Fault, request, out);
  }
  absl::Status call(const v1::VictimsRequest& request, v1::VictimsResponse& out) override {
    return on(*lab_, &v1::Lab::Stub::Victims, request, out);
  }
  absl::Status call(const v1::ReloadRequest& request, v1::ReloadResponse& out) override {
    return on(*lab_, &v1::Lab::Stub::Reload, request, out);
  }
  absl::Status call(const v1::ReplicaRequest& request, v1::ReplicaResponse& out) override {
    return on(*lab_, &v1::Lab::Stub::Replica, request, out);
  }
  absl::Status call(const v1::FootprintRequest& request, v1::FootprintResponse& out) override {
    return on(*lab_, &v1::Lab::Stub::Footprint, request, out);
  }

 private:
  template <typename Stub, typename Method, typename Request, typename Response>
  absl::Status on(Stub& stub, Method method, const Request& request, Response& out) {
    grpc::ClientContext context;
    client::identify(context, handles_.welcome().engine, handles_.welcome().token);
    context.set_deadline(client::deadline_in(kTimeout));
    const grpc::Status status = (stub.*method)(&context, request, &out);
    return status.ok() ? absl::OkStatus() : client::status_of(status, "the laboratory");
  }

  HandleLink handles_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::unique_ptr<v1::Orchestrator::Stub> orchestrator_;
  std::unique_ptr<v1::Lab::Stub> lab_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RealAdmin>> RealAdmin::connect(const std::string& directory) {
  Hello hello;
  hello.role = MemberRole::kOperator;
  hello.engine_name = "memdecay-scenario";
  const Duration timeout = Duration::from_seconds(10);
  absl::StatusOr<HandleLink> handles =
      HandleLink::attach(client::handle_socket_path(directory), hello, client::now() + timeout);
  if (!handles.ok()) return handles.status();
  auto channel = client::connect_channel(handles->welcome().control_path, timeout);
  if (!channel.ok()) return channel.status();
  return std::make_unique<GrpcRealAdmin>(*std::move(handles), *channel);
}

}  // namespace memdecay::scenario
