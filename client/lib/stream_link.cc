// StreamLink on gRPC's callback API: nothing here waits for the network but lookup() and open().
// Thread: see stream_link.h; one private leaf mutex.
#include "client/lib/stream_link.h"

#include <grpcpp/grpcpp.h>

#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "client/lib/grpc_call.h"
#include "client/lib/limits.h"
#include "memdecay/v1/memory.grpc.pb.h"
#include "proto/contract/error.h"

namespace memdecay::client {
namespace {

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
    context.set_deadline(deadline_in(timeout));
    v1::LookupResponse response;
    const grpc::Status status = stub_->Lookup(&context, request, &response);
    if (!status.ok()) return status_of(status, "lookup");
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
    absl::Status why = status_of(status, "the engine's stream");
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
                                                             Listener& listener, Duration timeout) {
  auto channel = connect_channel(control_path, timeout);
  if (!channel.ok()) return channel.status();
  auto link = std::make_unique<GrpcLink>(*std::move(channel), engine, token, listener);
  link->start();
  return std::unique_ptr<StreamLink>(std::move(link));
}

}  // namespace memdecay::client
