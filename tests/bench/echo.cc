// See echo.h. The one file of the benchmark that includes gRPC's headers.
#include "tests/bench/echo.h"

#include <grpcpp/grpcpp.h>

#include <iostream>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/lib/grpc_call.h"
#include "memdecay/v1/memory.grpc.pb.h"
#include "proto/contract/error.h"

namespace memdecay::bench {
namespace {

constexpr Duration kPatience = Duration::from_seconds(10);

// One message at a time is read, answered, and only then the next is read.
class EchoStream final : public grpc::ServerBidiReactor<v1::StreamRequest, v1::StreamResponse> {
 public:
  EchoStream() { StartRead(&request_); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    response_.mutable_reply()->set_re(request_.seq());
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (ok)
      StartRead(&request_);
    else
      Finish(grpc::Status::OK);
  }
  void OnDone() override { delete this; }

  v1::StreamRequest request_;
  v1::StreamResponse response_;
};

class EchoService final : public v1::Memory::CallbackService {
  grpc::ServerBidiReactor<v1::StreamRequest, v1::StreamResponse>* Stream(
      grpc::CallbackServerContext* /*context*/) override {
    return new EchoStream();  // gRPC's: OnDone deletes it
  }
};

class GrpcEchoClient final
    : public EchoClient,
      private grpc::ClientBidiReactor<v1::StreamRequest, v1::StreamResponse> {
 public:
  explicit GrpcEchoClient(std::shared_ptr<grpc::Channel> channel)
      : stub_(v1::Memory::NewStub(channel)) {
    stub_->async()->Stream(&context_, this);
    AddHold();
    StartRead(&response_);
    StartCall();
  }
  ~GrpcEchoClient() override {
    context_.TryCancel();
    RemoveHold();
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&done_));
  }

  absl::Status round_trip() override {
    request_.set_seq(++sent_);
    request_.set_epoch(1);
    request_.set_session(1);
    request_.mutable_set_budget();
    StartWrite(&request_);
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &GrpcEchoClient::settled));
    if (received_ == sent_ && written_ == sent_) return absl::OkStatus();
    return make_error(ErrorCode::kUnavailable, "an echo", "the stream is down");
  }

 private:
  bool settled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return done_ || (received_ == sent_ && written_ == sent_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    const uint64_t answered = response_.reply().re();
    StartRead(&response_);
    absl::MutexLock lock(&mutex_);
    received_ = answered;
  }
  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    if (ok) ++written_;
  }
  void OnDone(const grpc::Status& /*status*/) override {
    absl::MutexLock lock(&mutex_);
    done_ = true;
  }

  std::unique_ptr<v1::Memory::Stub> stub_;
  grpc::ClientContext context_;
  v1::StreamRequest request_;    // gRPC's until OnWriteDone
  v1::StreamResponse response_;  // gRPC's until OnReadDone
  uint64_t sent_ = 0;            // the caller's
  absl::Mutex mutex_;
  uint64_t received_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t written_ ABSL_GUARDED_BY(mutex_) = 0;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

int serve_echo(const std::string& socket_path) {
  EchoService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("unix:", socket_path), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << "ready" << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  server->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
  return 0;
}

absl::StatusOr<std::unique_ptr<EchoClient>> EchoClient::connect(const std::string& socket_path) {
  auto channel = client::connect_channel(socket_path, kPatience);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<EchoClient>(std::make_unique<GrpcEchoClient>(*std::move(channel)));
}

}  // namespace memdecay::bench
