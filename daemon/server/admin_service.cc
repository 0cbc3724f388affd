// Orchestrator and Admin: what is said and asked about sessions from outside their engine (see
// services.h). Reports are read between two steps of the ledger, on the reactor's thread.
#include <grpcpp/grpcpp.h>

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/report.h"
#include "daemon/server/grpc_call.h"
#include "daemon/server/record_call.h"
#include "daemon/server/services.h"
#include "daemon/server/to_wire.h"
#include "daemon/server/to_wire_report.h"
#include "memdecay/v1/admin.grpc.pb.h"
#include "memdecay/v1/orchestrator.grpc.pb.h"
#include "proto/contract/error.h"

namespace memdecay::server {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using ledger::Ledger;

constexpr size_t kDecisionsListed = 20;  // unless the caller says how many

// Posts what `make` builds once the session is known; `done` fills the response from the reply.
using Make = std::function<absl::StatusOr<ledger::Event>(const ledger::Origin&, SessionId)>;
using Fill = std::function<void(const ledger::ReplyBody&)>;

void ask_about(ServerUnaryReactor* reactor, Edge& edge, TenantId tenant,
               const v1::SessionName& name, Make make, Fill done) {
  edge.reactor().inspect([reactor, &edge, tenant, &name, make = std::move(make),
                          done = std::move(done)](Ledger& ledger) {
    const absl::StatusOr<SessionId> session = resolve(ledger, tenant, name);
    if (!session.ok()) return refuse(reactor, edge, session.status());
    const RequestId request = edge.expect([reactor, done](const ledger::Reply& reply) {
      if (reply.status.ok() && done) done(reply.body);
      reactor->Finish(to_grpc(reply.status));
    });
    edge.ask(request, make({.request = request, .tenant = tenant}, *session));
  });
}

// Reads the ledger between two steps; `look` fills the response or says what is wrong.
void look_at(ServerUnaryReactor* reactor, Edge& edge, std::function<absl::Status(Ledger&)> look) {
  edge.reactor().inspect([reactor, &edge, look = std::move(look)](Ledger& ledger) {
    const absl::Status status = look(ledger);
    if (!status.ok()) return refuse(reactor, edge, status);
    reactor->Finish(grpc::Status::OK);
  });
}

class OrchestratorService final : public v1::Orchestrator::CallbackService {
 public:
  OrchestratorService(Edge& edge, const ServiceFacts& facts) : edge_(edge), rules_(facts.rules) {}

  ServerUnaryReactor* Apply(CallbackServerContext* context, const v1::ApplyRequest* request,
                            v1::ApplyResponse*) override {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const absl::StatusOr<Caller> caller = caller_of(*context, edge_);
    if (!caller.ok()) {
      refuse(reactor, edge_, caller.status());
      return reactor;
    }
    edge_.engines().heard(caller->engine);
    ask_about(
        reactor, edge_, caller->tenant, request->session(),
        [request, rules = rules_](const ledger::Origin& origin, SessionId session) {
          return event_from_wire(*request, origin, session, rules);
        },
        nullptr);
    return reactor;
  }

  ServerUnaryReactor* GetSession(CallbackServerContext* context,
                                 const v1::GetSessionRequest* request,
                                 v1::GetSessionResponse* response) override {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const absl::StatusOr<Caller> caller = caller_of(*context, edge_);
    if (!caller.ok()) {
      refuse(reactor, edge_, caller.status());
      return reactor;
    }
    look_at(reactor, edge_, [request, response, tenant = caller->tenant](Ledger& ledger) {
      const absl::StatusOr<SessionId> session = resolve(ledger, tenant, request->session());
      if (!session.ok()) return session.status();
      // Of another tenant is as good as of nobody.
      for (const ledger::SessionReport& report : ledger::report_sessions(ledger, tenant)) {
        if (report.session != *session) continue;
        fill(*response->mutable_session(), report);
        return absl::OkStatus();
      }
      return make_error(ErrorCode::kUnknownSession, absl::StrCat("session ", session->value),
                        "no such session of this tenant", "");
    });
    return reactor;
  }

 private:
  Edge& edge_;
  const WireRules rules_;
};

class AdminService final : public v1::Admin::CallbackService {
 public:
  AdminService(Edge& edge, Recorder& recorder, const ServiceFacts& facts, const base::Clock& clock)
      : edge_(edge), recorder_(recorder), facts_(facts), clock_(clock) {}

  ServerUnaryReactor* GetStatus(CallbackServerContext* context, const v1::GetStatusRequest*,
                                v1::GetStatusResponse* response) override {
    return inspect(context, [this, response](Ledger& ledger) {
      response->set_version(facts_.version);
      response->set_device(facts_.config.device_kind);
      response->set_death_notice(facts_.death_notice);
      response->set_metrics_address(facts_.metrics_address);
      response->set_uptime_ms((clock_.now() - facts_.started).milliseconds());
      fill(*response, ledger::report_status(ledger));
      fill_regrets(*response, ledger);
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* ListSessions(CallbackServerContext* context, const v1::ListSessionsRequest*,
                                   v1::ListSessionsResponse* response) override {
    return inspect(context, [response](Ledger& ledger) {
      for (const ledger::SessionReport& report : ledger::report_sessions(ledger, TenantId{})) {
        fill(*response->add_sessions(), report);
      }
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* ListPages(CallbackServerContext* context, const v1::ListPagesRequest* request,
                                v1::ListPagesResponse* response) override {
    return inspect(context, [request, response](Ledger& ledger) {
      const absl::StatusOr<SessionId> session = resolve(ledger, TenantId{}, request->session());
      if (!session.ok()) return session.status();
      const auto report = ledger::report_session(ledger, *session);
      if (!report.ok()) return report.status();
      fill(*response->mutable_session(), *report);
      const auto pages = ledger::report_pages(ledger, *session);
      if (!pages.ok()) return pages.status();
      for (const ledger::PageReport& page : *pages) fill(*response->add_pages(), page);
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* Explain(CallbackServerContext* context, const v1::ExplainRequest* request,
                              v1::ExplainResponse* response) override {
    return inspect(context, [this, request, response](Ledger& ledger) {
      if (request->has_decision()) {
        const auto decision = ledger::report_decision(ledger, DecisionId{request->decision()});
        if (!decision.ok()) return decision.status();
        fill(*response->add_decisions(), *decision, clock_.now());
        return absl::OkStatus();
      }
      return explain_page(ledger, request->page(), *response);
    });
  }

  ServerUnaryReactor* ListDecisions(CallbackServerContext* context,
                                    const v1::ListDecisionsRequest* request,
                                    v1::ListDecisionsResponse* response) override {
    return inspect(context, [this, request, response](Ledger& ledger) {
      SessionId session;
      if (request->has_session()) {
        const absl::StatusOr<SessionId> found = resolve(ledger, TenantId{}, request->session());
        if (!found.ok()) return found.status();
        session = *found;
      }
      const size_t most = request->last() == 0 ? kDecisionsListed : request->last();
      for (const auto& decision : ledger::report_last_decisions(ledger, session, most)) {
        fill(*response->add_decisions(), decision, clock_.now());
      }
      response->set_kept(
          static_cast<uint32_t>(ledger::report_last_decisions(ledger, {}, SIZE_MAX).size()));
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* GetFigures(CallbackServerContext* context, const v1::GetFiguresRequest*,
                                 v1::GetFiguresResponse* response) override {
    return inspect(context, [this, response](Ledger& ledger) {
      fill(*response, ledger);
      response->set_uptime_ms((clock_.now() - facts_.started).milliseconds());
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* Check(CallbackServerContext* context, const v1::CheckRequest*,
                            v1::CheckResponse* response) override {
    return inspect(context, [response](Ledger& ledger) {
      for (const std::string& difference : ledger.audit()) response->add_differences(difference);
      return absl::OkStatus();
    });
  }

  ServerUnaryReactor* Pin(CallbackServerContext* context, const v1::AdminPinRequest* request,
                          v1::AdminPinResponse*) override {
    return ask(context, request->session(),
               [request](const ledger::Origin& origin, SessionId session) {
                 return pin_from_wire(request->pin(), origin, session);
               });
  }

  ServerUnaryReactor* Unpin(CallbackServerContext* context, const v1::AdminUnpinRequest* request,
                            v1::AdminUnpinResponse*) override {
    return ask(context, request->session(),
               [request](const ledger::Origin& origin, SessionId session) {
                 return unpin_from_wire(request->unpin(), origin, session);
               });
  }

  ServerUnaryReactor* Evict(CallbackServerContext* context, const v1::AdminEvictRequest* request,
                            v1::AdminEvictResponse*) override {
    return ask(context, request->session(),
               [request](const ledger::Origin& origin,
                         SessionId session) -> absl::StatusOr<ledger::Event> {
                 auto pages = pages_from_wire(request->pages());
                 if (!pages.ok()) return pages.status();
                 return ledger::EvictPages{
                     .origin = origin, .session = session, .pages = *std::move(pages)};
               });
  }

  ServerUnaryReactor* Restore(CallbackServerContext* context,
                              const v1::AdminRestoreRequest* request,
                              v1::AdminRestoreResponse* response) override {
    return ask(
        context, request->session(),
        [request](const ledger::Origin& origin,
                  SessionId session) -> absl::StatusOr<ledger::Event> {
          auto pages = pages_from_wire(request->pages());
          if (!pages.ok()) return pages.status();
          return ledger::RestorePages{
              .origin = origin, .session = session, .pages = *std::move(pages)};
        },
        [response](const ledger::ReplyBody& body) {
          if (const auto* restored = std::get_if<ledger::RestoreReply>(&body)) {
            fill(*response->mutable_result(), *restored);
          }
        });
  }

  ServerUnaryReactor* Drop(CallbackServerContext* context, const v1::DropRequest* request,
                           v1::DropResponse* response) override {
    const Make make = [request](const ledger::Origin& origin,
                                SessionId session) -> absl::StatusOr<ledger::Event> {
      auto pages = pages_from_wire(request->pages());
      if (!pages.ok()) return pages.status();
      if (request->tier() != v1::TIER_DEVICE && request->tier() != v1::TIER_HOST) {
        return make_error(ErrorCode::kUnsupported, "drop from disk or remote",
                          "not in this build yet", "drop from device or host");
      }
      using Reach = ledger::Drop::Reach;
      return ledger::Drop{.origin = origin,
                          .session = session,
                          .pages = *std::move(pages),
                          .tier = static_cast<Tier>(request->tier()),
                          .reach = request->all_tiers() ? Reach::kAllTiers : Reach::kOneTier};
    };
    const Fill done = [response](const ledger::ReplyBody& body) {
      if (const auto* dropped = std::get_if<ledger::DropReply>(&body)) fill(*response, *dropped);
    };
    if (request->has_session()) return ask(context, request->session(), make, done);
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const absl::StatusOr<Caller> caller = admin_of(*context, edge_, facts_);
    if (!caller.ok()) {
      refuse(reactor, edge_, caller.status());
      return reactor;
    }
    const RequestId id = edge_.expect([reactor, done](const ledger::Reply& reply) {
      if (reply.status.ok()) done(reply.body);
      reactor->Finish(to_grpc(reply.status));
    });
    edge_.ask(id, make({.request = id, .tenant = caller->tenant}, SessionId{}));
    return reactor;
  }

  grpc::ServerWriteReactor<v1::RecordResponse>* Record(CallbackServerContext* context,
                                                       const v1::RecordRequest* request) override {
    const absl::StatusOr<Caller> caller = admin_of(*context, edge_, facts_);
    if (!caller.ok()) return refuse_recording(edge_, caller.status());
    return start_recording(*request, edge_, recorder_, facts_, clock_);
  }

  ServerUnaryReactor* GetConfig(CallbackServerContext* context, const v1::GetConfigRequest*,
                                v1::GetConfigResponse* response) override {
    return inspect(context, [this, response](Ledger&) {
      response->set_yaml(print_yaml(facts_.config));
      return absl::OkStatus();
    });
  }

 private:
  ServerUnaryReactor* inspect(CallbackServerContext* context,
                              std::function<absl::Status(Ledger&)> look) {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const absl::StatusOr<Caller> caller = admin_of(*context, edge_, facts_);
    if (!caller.ok()) {
      refuse(reactor, edge_, caller.status());
    } else {
      edge_.engines().heard(caller->engine);
      look_at(reactor, edge_, std::move(look));
    }
    return reactor;
  }

  // For any tenant: operators see all.
  ServerUnaryReactor* ask(CallbackServerContext* context, const v1::SessionName& session, Make make,
                          Fill done = nullptr) {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const absl::StatusOr<Caller> caller = admin_of(*context, edge_, facts_);
    if (!caller.ok()) {
      refuse(reactor, edge_, caller.status());
    } else {
      edge_.engines().heard(caller->engine);
      ask_about(reactor, edge_, TenantId{}, session, std::move(make), std::move(done));
    }
    return reactor;
  }

  absl::Status explain_page(const Ledger& ledger, const v1::PageName& name,
                            v1::ExplainResponse& response) const {
    const absl::StatusOr<SessionId> session = resolve(ledger, TenantId{}, name.session());
    if (!session.ok()) return session.status();
    const auto pages = ledger::report_pages(ledger, *session);
    if (!pages.ok()) return pages.status();
    if (name.page() >= pages->size()) {
      return make_error(ErrorCode::kUnknownPage, absl::StrCat("page ", name.page()),
                        absl::StrCat("the session has ", pages->size()), "list its pages");
    }
    fill(*response.mutable_page(), (*pages)[name.page()]);
    fill(*response.mutable_terms(), ledger::report_terms(ledger, *session, name.page()));
    for (const ledger::DecisionReport& decision :
         ledger::report_decisions(ledger, *session, name.page())) {
      fill(*response.add_decisions(), decision, clock_.now());
    }
    return absl::OkStatus();
  }

  Edge& edge_;
  Recorder& recorder_;
  const ServiceFacts facts_;
  const base::Clock& clock_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_orchestrator_service(Edge& edge, const ServiceFacts& facts) {
  return std::make_unique<OrchestratorService>(edge, facts);
}

std::unique_ptr<grpc::Service> make_admin_service(Edge& edge, Recorder& recorder,
                                                  const ServiceFacts& facts,
                                                  const base::Clock& clock) {
  return std::make_unique<AdminService>(edge, recorder, facts, clock);
}

}  // namespace memdecay::server
