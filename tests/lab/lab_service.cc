// One function a lever (lab_service.h). These are blocking handlers on gRPC's threads: a test pulls
// one lever at a time and waits for it.
#include "tests/lab/lab_service.h"

#include <dirent.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/mailbox.h"
#include "daemon/ledger/report.h"
#include "daemon/ledger/state.h"
#include "daemon/server/grpc_call.h"
#include "daemon/server/to_wire.h"
#include "memdecay/v1/lab.grpc.pb.h"
#include "proto/contract/error.h"
#include "tests/lab/lab_rest.h"

namespace memdecay::lab {
namespace {

using grpc::ServerContext;
using ledger::Ledger;

// A deadline that is due already is passed by this much.
constexpr Duration kATick = Duration::from_milliseconds(1);

absl::StatusOr<ledger::CopyKind> direction_of(const std::string& name) {
  if (name == "evict") return ledger::CopyKind::kEvict;
  if (name == "restore") return ledger::CopyKind::kRestore;
  if (name == "store") return ledger::CopyKind::kStore;
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("direction \"", name, "\""),
                    "is none of evict, restore, store", "");
}

int64_t open_descriptors() {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int64_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count - 3;  // ".", ".." and the folder itself
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  file >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

class LabService final : public v1::Lab::Service {
 public:
  LabService(const Bench& bench, server::Config config)
      : bench_(bench), config_(std::move(config)) {}

  grpc::Status Hold(ServerContext*, const v1::HoldRequest* request, v1::HoldResponse*) override {
    const auto kind = direction_of(request->direction());
    if (!kind.ok()) return server::to_grpc(kind.status());
    return server::to_grpc(on_reactor([&](Ledger& ledger) {
      for (const uint32_t page : request->pages()) {
        const auto content = content_of(ledger, request->session(), page);
        if (!content.ok()) return content.status();
        bench_.gate.hold(*content, *kind);
        held_[{request->session().session(), page}] = *content;
      }
      return absl::OkStatus();
    }));
  }

  grpc::Status Finish(ServerContext*, const v1::FinishRequest* request,
                      v1::FinishResponse*) override {
    return server::to_grpc(on_reactor([&](Ledger& ledger) {
      for (const uint32_t page : request->pages()) {
        auto content = content_of(ledger, request->session(), page);
        // A page that was cut off, closed or dropped meanwhile: its copy is still there.
        const auto before = held_.find({request->session().session(), page});
        if (before != held_.end()) content = before->second;
        if (!content.ok()) return content.status();
        if (request->fail()) {
          bench_.gate.fail(*content,
                           make_error(ErrorCode::kInternal, "a copy", "a test failed it", ""));
        } else {
          bench_.gate.finish(*content);
        }
      }
      return absl::OkStatus();
    }));
  }

  grpc::Status Tick(ServerContext*, const v1::TickRequest* request,
                    v1::TickResponse* response) override {
    const Duration asked = request->nanoseconds() != 0
                               ? Duration{request->nanoseconds()}
                               : Duration::from_milliseconds(request->milliseconds());
    if (asked.nanoseconds < 0) {
      return server::to_grpc(make_error(ErrorCode::kInvalidArgument, "tick", "backwards", ""));
    }
    if (request->stand()) bench_.clock.stand();
    Duration by = asked;
    // The first look wakes the reactor, which then sees what is due; the second comes after that.
    on_reactor([&](Ledger& ledger) {
      const std::optional<Instant> due = ledger.next_deadline();
      const Instant now = bench_.clock.now();
      if (request->to_next_deadline()) {
        const bool none = !due || *due > now + asked;
        by = none ? Duration{} : std::min(asked, std::max(*due - now, kATick));
      }
      bench_.clock.advance(by);
      return absl::OkStatus();
    }).IgnoreError();
    response->set_nanoseconds(by.nanoseconds);
    return server::to_grpc(on_reactor([](Ledger&) { return absl::OkStatus(); }));
  }

  grpc::Status Settle(ServerContext*, const v1::SettleRequest* request,
                      v1::SettleResponse* response) override {
    return server::to_grpc(wait_for_rest(bench_, *request, *response));
  }

  grpc::Status Pressure(ServerContext*, const v1::PressureRequest* request,
                        v1::PressureResponse* response) override {
    TenantId tenant{1};
    const absl::Status known = on_reactor([&](Ledger& ledger) {
      if (request->tenant().empty()) return absl::OkStatus();
      for (const auto& [id, named] : ledger.state().tenants) {
        if (named.options.name != request->tenant()) continue;
        tenant = id;
        return absl::OkStatus();
      }
      return make_error(ErrorCode::kNotFound, absl::StrCat("tenant ", request->tenant()),
                        "is not configured", "");
    });
    if (!known.ok()) return server::to_grpc(known);
    base::Wake wake;
    absl::Status outcome;
    const RequestId id = bench_.edge.expect([&](const ledger::Reply& reply) {
      outcome = reply.status;
      if (const auto* body = std::get_if<ledger::PressureReply>(&reply.body)) {
        response->set_free_pages(body->free_pages);
      }
      wake.ring();
    });
    bench_.edge.ask(id, ledger::Event(ledger::Pressure{.origin = {.request = id, .tenant = tenant},
                                                       .pages = request->pages()}));
    wake.wait();  // the ledger answers within limits.request_ms, a stopping daemon at once
    return server::to_grpc(outcome);
  }

  grpc::Status Samples(ServerContext*, const v1::SamplesRequest*,
                       v1::SamplesResponse* response) override {
    for (const ledger::Sample& sample : bench_.metrics.snapshot().samples) {
      v1::Sample& wire = *response->add_samples();
      wire.set_name(sample.name);
      wire.set_value(sample.value);
      for (const auto& [name, value] : sample.labels) {
        v1::Label& label = *wire.add_labels();
        label.set_name(name);
        label.set_value(value);
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status Fault(ServerContext*, const v1::FaultRequest* request, v1::FaultResponse*) override {
    const std::string& what = request->what();
    if (what == "flip" || what == "zero" || what == "unlink" || what == "reorder") {
      return damage(*request);
    }
    return server::to_grpc(on_reactor([&](Ledger& ledger) {
      if (what == "hash_bits" && request->value() >= 1 && request->value() <= 256) {
        ledger.truncate_keys_for_test(static_cast<int>(request->value()));
      } else if (what == "completion_lost") {
        bench_.gate.lose_completions(request->value(), 1);
      } else if (what == "device_memory" || what == "host_memory") {
        using Memory = support::CopyGate::Memory;
        const Memory there = request->value() == 0 ? Memory::kRefused : Memory::kThere;
        (what == "device_memory" ? device_memory_ : host_memory_) = there;
        bench_.gate.memory(device_memory_, host_memory_);
      } else {
        return make_error(ErrorCode::kInvalidArgument, absl::StrCat("fault \"", what, "\""),
                          "there is none of that name and value", "see lab.proto");
      }
      return absl::OkStatus();
    }));
  }

  grpc::Status Victims(ServerContext*, const v1::VictimsRequest* request,
                       v1::VictimsResponse* response) override {
    return server::to_grpc(on_reactor([&](Ledger& ledger) {
      const auto session = server::resolve(ledger, TenantId{}, request->session());
      if (!session.ok()) return session.status();
      for (const auto& [page, score] : ledger::report_victims(ledger, *session, request->count())) {
        response->add_pages(page);
      }
      return absl::OkStatus();
    }));
  }

  grpc::Status Reload(ServerContext*, const v1::ReloadRequest* request,
                      v1::ReloadResponse*) override {
    server::Config next = config_;
    for (const std::string& word : request->settings()) {
      const absl::Status status = server::apply_setting_word(next, word);
      if (!status.ok()) return server::to_grpc(status);
    }
    absl::StatusOr<server::Config> resolved =
        server::resolve(std::move(next), server::Occasion::kReload);
    if (!resolved.ok()) return server::to_grpc(resolved.status());
    base::Wake wake;
    absl::Status outcome;
    bench_.edge.reactor().reconfigure(resolved->ledger, [&](absl::Status status) {
      outcome = std::move(status);
      wake.ring();
    });
    wake.wait();
    if (outcome.ok()) config_ = *std::move(resolved);
    return server::to_grpc(outcome);
  }

  grpc::Status Replica(ServerContext*, const v1::ReplicaRequest* request,
                       v1::ReplicaResponse* response) override {
    return server::to_grpc(on_reactor([&](Ledger& ledger) {
      const auto content = content_of(ledger, request->session(), request->page());
      if (!content.ok()) return content.status();
      absl::StatusOr<std::string> bytes = bench_.bytes.read_host(*content);
      if (!bytes.ok()) return bytes.status();
      response->set_content(*std::move(bytes));
      return absl::OkStatus();
    }));
  }

  grpc::Status Footprint(ServerContext*, const v1::FootprintRequest*,
                         v1::FootprintResponse* response) override {
    int64_t held = 0;
    int64_t slabs = 0;
    on_reactor([&](Ledger&) {
      held = static_cast<int64_t>(bench_.bytes.host().used_bytes() +
                                  bench_.bytes.slabs().used_bytes());
      slabs = static_cast<int64_t>(bench_.bytes.slabs().slabs());
      return absl::OkStatus();
    }).IgnoreError();
    response->set_rss_bytes(resident_bytes() - held);
    response->set_descriptors(open_descriptors() - slabs);
    return grpc::Status::OK;
  }

 private:
  using Pages = google::protobuf::RepeatedField<uint32_t>;

  // Runs on the reactor's thread between two steps; waits for it.
  absl::Status on_reactor(const std::function<absl::Status(Ledger&)>& work) {
    base::Wake wake;
    absl::Status outcome;
    bench_.edge.reactor().inspect([&](Ledger& ledger) {
      outcome = work(ledger);
      wake.ring();
    });
    wake.wait();
    return outcome;
  }

  static absl::StatusOr<ContentId> content_of(const Ledger& ledger, const v1::SessionName& name,
                                              uint32_t page) {
    const auto session = server::resolve(ledger, TenantId{}, name);
    if (!session.ok()) return session.status();
    const auto pages = ledger::report_pages(ledger, *session);
    if (!pages.ok()) return pages.status();
    if (page >= pages->size()) {
      return make_error(ErrorCode::kUnknownPage, absl::StrCat("page ", page),
                        absl::StrCat("the session has ", pages->size()), "");
    }
    if (!(*pages)[page].content) {
      return make_error(ErrorCode::kNotSealed, absl::StrCat("page ", page), "it has no content yet",
                        "seal it first");
    }
    return (*pages)[page].content;
  }

  grpc::Status with_contents(const v1::SessionName& session, const Pages& pages,
                             const std::function<absl::Status(ContentId)>& act) {
    return server::to_grpc(on_reactor([&](Ledger& ledger) {
      for (const uint32_t page : pages) {
        const auto content = content_of(ledger, session, page);
        absl::Status status = content.status();
        if (status.ok()) status = act(*content);
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    }));
  }

  grpc::Status damage(const v1::FaultRequest& request) {
    if (request.what() == "reorder") {
      std::vector<ContentId> contents;
      const grpc::Status found =
          with_contents(request.session(), request.pages(), [&](ContentId content) {
            contents.push_back(content);
            return absl::OkStatus();
          });
      if (!found.ok() || contents.size() != 2) return found;
      return server::to_grpc(on_reactor([&](Ledger&) {
        bench_.gate.reorder(contents[0], contents[1]);
        return absl::OkStatus();
      }));
    }
    return with_contents(request.session(), request.pages(), [&](ContentId content) {
      if (request.what() == "flip") return bench_.bytes.flip_host(content, 0);
      if (request.what() == "zero") return bench_.bytes.zero_host(content);
      bench_.bytes.unlink_host(content);
      return absl::OkStatus();
    });
  }

  const Bench bench_;
  server::Config config_;
  // What was held, by session and page; the reactor's thread.
  std::map<std::pair<uint64_t, PageIndex>, ContentId> held_;
  support::CopyGate::Memory device_memory_ = support::CopyGate::Memory::kThere;
  support::CopyGate::Memory host_memory_ = support::CopyGate::Memory::kThere;
};

}  // namespace

std::unique_ptr<grpc::Service> make_lab_service(const Bench& bench, const server::Config& config) {
  return std::make_unique<LabService>(bench, config);
}

}  // namespace memdecay::lab
