// StreamLink on gRPC's callback API: nothing here waits for the network but lookup() and open().
// Thread: see stream_link.h; one private leaf mutex.
#include "client/lib/stream_link.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <deque>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/lib/convert.h"
#include "client/lib/limits.h"
#include "memdecay/v1/memory.grpc.pb.h"
#include "proto/contract/error.h"

namespace memdecay::client {
namespace {

std::chrono::nanoseconds nanoseconds(Duration duration) {
  return std::chrono::nanoseconds(duration.nanoseconds);
}

gpr_timespec in(Duration duration) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(nanoseconds(duration).count(), GPR_TIMESPAN));
}

void identify(grpc::ClientContext& context, EngineId engine, const Token& token) {
  context.AddMetadata("memdecay-engine", std::to_string(engine.value));
  context.AddMetadata("memdecay-token-bin",
                      std::string(reinterpret_cast<const char*>(token.data()), token.size()));
}

absl::Status from_grpc(const grpc::Status& status, const char* asked) {
  if (status.ok()) return absl::OkStatus();
  v1::ErrorDetail detail;
  if (!status.error_details().empty() && detail.ParseFromString(status.error_details())) {
    return make_error(error_of(detail));
  }
  const bool late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  const bool refused = status.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
                       status.error_code() == grpc::StatusCode::UNAUTHENTICATED;
  return make_error({late      ? ErrorCode::kDeadline
                     : refused ? ErrorCode::kPermission
                               : ErrorCode::kUnavailable,
                     asked, status.error_message(),
                     "see that memdecayd runs; the client connects again by itself", 100});
}

class GrpcLink final : public StreamLink,
                       private grpc::ClientBidiReactor<v1::StreamRequest, v1::StreamResponse> {
 public:
  GrpcLink(std::shared_ptr<grpc::Channel> channel, EngineId engine, const Token& token,
           Listener& listener)
      : engine_(engine), token_(token), listener_(listener), stub_(v1::Memory::NewStub(channel)) {
    identify(context_, engine, token);
  }

  void start() {
    stub_->async()->Stream(&context_, this);
    AddHold();  // send() starts writes from outside of reactions
    StartRead(&incoming_);
    StartCall();
  }

  ~GrpcLink() override {
    context_.TryCancel();
    stop();
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&done_));
  }

  void send(v1::StreamRequest message) override {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    outgoing_.push_back(std::move(message));
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  absl::StatusOr<v1::LookupResponse> lookup(const v1::LookupRequest& request,
                                            Duration timeout) override {
    grpc::ClientContext context;
    identify(context, engine_, token_);
    context.set_deadline(in(timeout));
    v1::LookupResponse response;
    const grpc::Status status = stub_->Lookup(&context, request, &response);
    if (!status.ok()) return from_grpc(status, "lookup");
    return response;
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      stop();
      return;
    }
    listener_.on_message(incoming_);
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      context_.TryCancel();
      stop();
      return;
    }
    absl::MutexLock lock(&mutex_);
    outgoing_.pop_front();
    if (!stopped_ && !outgoing_.empty()) StartWrite(&outgoing_.front());
  }

  void OnDone(const grpc::Status& status) override {
    absl::Status why = from_grpc(status, "the engine's stream");
    listener_.on_down(why.ok() ? absl::CancelledError("the daemon ended the stream") : why);
    absl::MutexLock lock(&mutex_);
    done_ = true;
  }

  // No write starts from here on; the first call lets OnDone come.
  void stop() {
    {
      absl::MutexLock lock(&mutex_);
      if (stopped_) return;
      stopped_ = true;
    }
    RemoveHold();
  }

  const EngineId engine_;
  const Token token_;
  Listener& listener_;
  std::unique_ptr<v1::Memory::Stub> stub_;
  grpc::ClientContext context_;
  v1::StreamResponse incoming_;  // between StartRead and OnReadDone it is gRPC's
  absl::Mutex mutex_;
  std::deque<v1::StreamRequest> outgoing_ ABSL_GUARDED_BY(mutex_);  // front: being written
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StreamLink>> StreamLink::open(const std::string& control_path,
                                                             EngineId engine, const Token& token,
                                                             Listener& listener,
                                                             Duration timeout) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // A channel of an earlier daemon must not lend us its back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
      "unix:" + control_path, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(in(timeout))) {
    return make_error({ErrorCode::kUnavailable, absl::StrCat("connect to ", control_path),
                       "nobody serves there", "see that memdecayd runs", 100});
  }
  auto link = std::make_unique<GrpcLink>(std::move(channel), engine, token, listener);
  link->start();
  return std::unique_ptr<StreamLink>(std::move(link));
}

}  // namespace memdecay::client
