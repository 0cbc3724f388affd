// Memory: an engine's stream and Lookup (see services.h).
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/report.h"
#include "daemon/server/grpc_call.h"
#include "daemon/server/services.h"
#include "daemon/server/to_wire.h"
#include "memdecay/v1/memory.grpc.pb.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::server {
namespace {

// One open stream. It lives until gRPC says OnDone; the engine table calls it between attach_stream
// and detach_stream only.
class StreamCall final : public grpc::ServerBidiReactor<v1::StreamRequest, v1::StreamResponse>,
                         private StreamPort {
 public:
  StreamCall(Edge& edge, const WireRules& rules, const base::Clock& clock)
      : edge_(edge), rules_(rules), clock_(clock) {}

  void start(const absl::StatusOr<Caller>& caller) {
    absl::Status status = caller.status();
    if (status.ok()) {
      caller_ = *caller;
      status = edge_.engines().attach_stream(caller_.engine, *this);
    }
    if (!status.ok()) {
      edge_.errors().count(status);
      close(status);
      return;
    }
    edge_.engines().read_on(caller_.engine, *this);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      // Either the engine has said all, and still gets its answers, or it is gone. OnCancel tells;
      // whichever of the two comes second ends the stream.
      read_over_ = true;
      if (cancelled_) return end();
      return edge_.engines().end_when_answered(caller_.engine, *this);
    }
    if (closed_) return;
    handle();
    incoming_.Clear();
    edge_.engines().read_on(caller_.engine, *this);
  }

  void OnWriteDone(bool ok) override {
    // A failed write stays in the engine's queue for its next stream.
    if (ok) edge_.engines().written(caller_.engine, *this);
  }

  void OnCancel() override {
    cancelled_ = true;
    if (read_over_) end();
  }

  void OnDone() override {
    edge_.engines().detach_stream(caller_.engine, *this);
    delete this;
  }

 private:
  // ---- StreamPort: under the engine table's mutex ----
  void write(const v1::StreamResponse& message) override {
    if (closed_) return;
    outgoing_ = message;
    StartWrite(&outgoing_);
  }
  void read() override {
    if (!closed_) StartRead(&incoming_);
  }
  void close(const absl::Status& status) override {
    if (!closed_.exchange(true)) Finish(to_grpc(status));
  }

  // The engine is gone.
  void end() {
    edge_.engines().detach_stream(caller_.engine, *this);
    if (!closed_.exchange(true)) Finish(grpc::Status::OK);
  }

  void handle() {
    const uint64_t seq = incoming_.seq();
    const Epoch epoch{incoming_.epoch()};
    EngineTable& engines = edge_.engines();
    if (engines.admit(caller_.engine, epoch, seq, incoming_.session(), this) ==
        EngineTable::Admission::kHandled) {
      return;
    }
    Edge& edge = edge_;
    const EngineId engine = caller_.engine;
    const RequestId request =
        edge.expect([&engines, &clock = clock_, engine, seq,
                     session = incoming_.session()](const ledger::Reply& reply) {
          v1::StreamResponse response = reply_to_wire(reply, seq, clock.now());
          if (response.session() == 0) response.set_session(session);
          engines.answer(engine, seq, std::move(response));
        });
    engines.note_request(engine, seq, request);
    const ledger::Origin origin{
        .request = request, .tenant = caller_.tenant, .engine = engine, .epoch = epoch};
    absl::StatusOr<ledger::Event> event = incoming_.has_cancel_restore()
                                              ? cancel_from_wire(origin)
                                              : event_from_wire(incoming_, origin, rules_);
    if (!event.ok()) return edge.fail(request, event.status());
    if (incoming_.has_resume() && incoming_.resume().session() == 0) {
      return resume_by_name(*std::move(event), incoming_.resume().name());
    }
    if (incoming_.has_leave()) engines.leave(engine);
    engines.post(engine, *std::move(event));
  }

  // Only here is known which request a message has become.
  absl::StatusOr<ledger::Event> cancel_from_wire(const ledger::Origin& origin) const {
    const uint64_t seq = incoming_.cancel_restore().restore();
    const std::optional<RequestId> restore = edge_.engines().request_of(caller_.engine, seq);
    if (restore.has_value()) return ledger::CancelRestore{.origin = origin, .restore = *restore};
    return make_error(ErrorCode::kNotFound, absl::StrCat("cancel restore ", seq),
                      "it was answered already, or there is none", "nothing is to be done");
  }

  // Names are the ledger's to know.
  void resume_by_name(ledger::Event event, std::string name) {
    auto resume = std::get<ledger::ResumeSession>(std::move(event));
    edge_.reactor().inspect([&edge = edge_, resume = std::move(resume),
                             name = std::move(name)](ledger::Ledger& ledger) {
      ledger::ResumeSession found = resume;
      const std::optional<SessionId> session =
          ledger::find_session(ledger, found.origin.tenant, name);
      if (!session.has_value()) {
        edge.fail(found.origin.request,
                  make_error(ErrorCode::kUnknownSession, absl::StrCat("resume \"", name, "\""),
                             "no such session of this tenant", "open a new one"));
        return;
      }
      found.session = *session;
      const EngineId engine = found.origin.engine;
      edge.engines().post(engine, std::move(found));
    });
  }

  Edge& edge_;
  const WireRules rules_;
  const base::Clock& clock_;
  Caller caller_;
  v1::StreamRequest incoming_;
  v1::StreamResponse outgoing_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> read_over_{false};
  std::atomic<bool> cancelled_{false};
};

class MemoryService final : public v1::Memory::CallbackService {
 public:
  MemoryService(Edge& edge, const ServiceFacts& facts, const base::Clock& clock)
      : edge_(edge), rules_(facts.rules), clock_(clock) {}

  grpc::ServerBidiReactor<v1::StreamRequest, v1::StreamResponse>* Stream(
      grpc::CallbackServerContext* context) override {
    auto* const call = new StreamCall(edge_, rules_, clock_);
    call->start(caller_of(*context, edge_));
    return call;
  }

  grpc::ServerUnaryReactor* Lookup(grpc::CallbackServerContext* context,
                                   const v1::LookupRequest* request,
                                   v1::LookupResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const absl::StatusOr<Caller> caller = caller_of(*context, edge_);
    if (!caller.ok()) {
      refuse(reactor, edge_, caller.status());
      return reactor;
    }
    edge_.engines().heard(caller->engine);
    const RequestId id = edge_.expect([reactor, response](const ledger::Reply& reply) {
      if (const auto* body = std::get_if<ledger::LookupReply>(&reply.body)) fill(*response, *body);
      reactor->Finish(to_grpc(reply.status));
    });
    const ledger::Origin origin{
        .request = id, .tenant = caller->tenant, .engine = caller->engine, .epoch = caller->epoch};
    edge_.ask(id, event_from_wire(*request, origin, rules_));
    return reactor;
  }

 private:
  Edge& edge_;
  const WireRules rules_;
  const base::Clock& clock_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_memory_service(Edge& edge, const ServiceFacts& facts,
                                                   const base::Clock& clock) {
  return std::make_unique<MemoryService>(edge, facts, clock);
}

}  // namespace memdecay::server
