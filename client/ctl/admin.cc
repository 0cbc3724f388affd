// Admin over gRPC; the only file of memdecayctl that includes it.
// Thread: one; see admin.h.
#include "client/ctl/admin.h"

#include <utility>

#include "client/lib/grpc_call.h"
#include "client/lib/handle_link.h"
#include "client/lib/steady_clock.h"
#include "memdecay/v1/admin.grpc.pb.h"

namespace memdecay::ctl {
namespace {

using client::HandleLink;
using Stub = v1::Admin::Stub;

class GrpcAdmin final : public Admin {
 public:
  GrpcAdmin(HandleLink handles, const std::shared_ptr<grpc::Channel>& channel, Duration timeout)
      : handles_(std::move(handles)), stub_(v1::Admin::NewStub(channel)), timeout_(timeout) {}
  ~GrpcAdmin() override { handles_.say_goodbye(); }

  absl::StatusOr<v1::GetStatusResponse> status() override {
    return call<v1::GetStatusResponse>(&Stub::GetStatus, v1::GetStatusRequest(), "status");
  }
  absl::StatusOr<v1::ListSessionsResponse> sessions() override {
    return call<v1::ListSessionsResponse>(&Stub::ListSessions, v1::ListSessionsRequest(),
                                          "sessions");
  }
  absl::StatusOr<v1::ListPagesResponse> pages(const v1::ListPagesRequest& request) override {
    return call<v1::ListPagesResponse>(&Stub::ListPages, request, "pages");
  }
  absl::StatusOr<v1::ExplainResponse> explain(const v1::ExplainRequest& request) override {
    return call<v1::ExplainResponse>(&Stub::Explain, request, "explain");
  }
  absl::StatusOr<v1::CheckResponse> check() override {
    return call<v1::CheckResponse>(&Stub::Check, v1::CheckRequest(), "check");
  }
  absl::StatusOr<v1::AdminPinResponse> pin(const v1::AdminPinRequest& request) override {
    return call<v1::AdminPinResponse>(&Stub::Pin, request, "pin");
  }
  absl::StatusOr<v1::AdminUnpinResponse> unpin(const v1::AdminUnpinRequest& request) override {
    return call<v1::AdminUnpinResponse>(&Stub::Unpin, request, "unpin");
  }
  absl::StatusOr<v1::AdminEvictResponse> evict(const v1::AdminEvictRequest& request) override {
    return call<v1::AdminEvictResponse>(&Stub::Evict, request, "evict");
  }
  absl::StatusOr<v1::AdminRestoreResponse> restore(
      const v1::AdminRestoreRequest& request) override {
    return call<v1::AdminRestoreResponse>(&Stub::Restore, request, "restore");
  }
  absl::StatusOr<v1::DropResponse> drop(const v1::DropRequest& request) override {
    return call<v1::DropResponse>(&Stub::Drop, request, "drop");
  }
  absl::StatusOr<v1::GetConfigResponse> config() override {
    return call<v1::GetConfigResponse>(&Stub::GetConfig, v1::GetConfigRequest(), "config");
  }

  absl::StatusOr<v1::ListDecisionsResponse> decisions(
      const v1::ListDecisionsRequest& request) override {
    return call<v1::ListDecisionsResponse>(&Stub::ListDecisions, request, "decisions");
  }
  absl::StatusOr<v1::GetFiguresResponse> figures() override {
    return call<v1::GetFiguresResponse>(&Stub::GetFigures, v1::GetFiguresRequest(), "figures");
  }
  absl::Status record(const v1::RecordRequest& request,
                      absl::FunctionRef<Go(const v1::RecordResponse&)> take) override {
    grpc::ClientContext context;
    client::identify(context, handles_.welcome().engine, handles_.welcome().token);
    const auto reader = stub_->Record(&context, request);
    v1::RecordResponse chunk;
    Go go = Go::kOn;
    while (reader->Read(&chunk)) {
      if (go == Go::kOn && take(chunk) == Go::kStop) {
        go = Go::kStop;
        context.TryCancel();
      }
    }
    const grpc::Status status = reader->Finish();
    return go == Go::kStop ? absl::OkStatus() : client::status_of(status, "record");
  }

 private:
  template <typename Response, typename Method, typename Request>
  absl::StatusOr<Response> call(Method method, const Request& request, const char* asked) {
    grpc::ClientContext context;
    client::identify(context, handles_.welcome().engine, handles_.welcome().token);
    context.set_deadline(client::deadline_in(timeout_));
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) return client::status_of(status, asked);
    return response;
  }

  HandleLink handles_;
  std::unique_ptr<Stub> stub_;
  const Duration timeout_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Admin>> Admin::connect(const std::string& directory,
                                                      Duration timeout) {
  Hello hello;
  hello.role = MemberRole::kOperator;
  hello.engine_name = "memdecayctl";
  absl::StatusOr<HandleLink> handles =
      HandleLink::attach(client::handle_socket_path(directory), hello, client::now() + timeout);
  if (!handles.ok()) return handles.status();
  auto channel = client::connect_channel(handles->welcome().control_path, timeout);
  if (!channel.ok()) return channel.status();
  return std::make_unique<GrpcAdmin>(*std::move(handles), *channel, timeout);
}

}  // namespace memdecay::ctl
