// See daemon.h.
#include "daemon/server/daemon.h"

#include <unistd.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/host_device.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/real_clock.h"
#include "daemon/ledger/report.h"
#include "daemon/reactor/real_bytes.h"
#include "daemon/reactor/real_fences.h"
#include "daemon/server/edge.h"
#include "daemon/server/engine_table.h"
#include "daemon/server/extension.h"
#include "daemon/server/grpc_server.h"
#include "daemon/server/handle_server.h"
#include "daemon/server/metrics.h"
#include "daemon/server/real_random.h"
#include "daemon/server/real_shared_memory.h"
#include "daemon/server/recorder.h"
#include "daemon/server/socket_directory.h"
#include "daemon/server/step_times.h"
#include "proto/contract/error.h"
#include "proto/contract/shadow_table.h"

namespace memdecay::server {
namespace {

// Without device.bytes the pool is counted in pages alone, by the ledger.
constexpr uint64_t kNoByteLimit = uint64_t{1} << 50;
// Slack for slabs that a shadow table cannot place one after the other.
constexpr uint32_t kSpareShadowRecords = 1024;
constexpr Duration kDrainLook = Duration::from_milliseconds(10);
constexpr Duration kStreamsEnd = Duration::from_milliseconds(1000);

uint32_t shadow_records(const Config& config) {
  const uint64_t wanted = uint64_t{config.ledger.device_pages} + kSpareShadowRecords;
  return static_cast<uint32_t>(std::min<uint64_t>(wanted, kMaxShadowRecords));
}

}  // namespace

// In the order in which they are made; the reverse is the order in which they go.
struct Daemon::Parts {
  Parts(Config a_config, const base::Log& a_log) : config(std::move(a_config)), log(a_log) {}

  absl::Status make_world();
  absl::Status make_edges(const std::string& fallback_directory);
  absl::Status serve();
  void complete(ledger::Event event) { reactor->complete(std::move(event)); }
  size_t copies_in_flight();

  const Config config;
  const base::Log& log;
  base::RealClock real_clock;
  std::unique_ptr<Extension> extension;
  base::Clock* clock = &real_clock;
  std::optional<SocketDirectory> directory;
  std::unique_ptr<cuda::Device> device;
  std::unique_ptr<reactor::RealFences> fences;
  std::unique_ptr<reactor::RealBytes> bytes;
  reactor::Bytes* bytes_port = nullptr;
  std::unique_ptr<RealSharedMemory> memory;
  std::unique_ptr<EngineTable> engines;
  std::unique_ptr<Edge> edge;
  std::unique_ptr<reactor::Reactor> reactor;
  StepTimes times;
  Recorder recorder;
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<HandleServer> handles;
  std::unique_ptr<GrpcServer> grpc;
  std::thread reactor_thread;
};

absl::Status Daemon::Parts::make_world() {
  extension = make_extension();
  if (extension != nullptr) clock = &extension->clock();
  auto made = cuda::create_host_device(
      {.limit_bytes = config.device_bytes > 0 ? config.device_bytes : kNoByteLimit});
  if (!made.ok()) return made.status();
  device = *std::move(made);

  const auto to_reactor = [this](ledger::Event event) { complete(std::move(event)); };
  fences = std::make_unique<reactor::RealFences>(to_reactor);
  // The ledger keeps the host tier's limit; headers come on top, 160 bytes a page.
  auto real =
      reactor::RealBytes::create({.shadow_records = shadow_records(config)}, *device, to_reactor);
  if (!real.ok()) return real.status();
  bytes = *std::move(real);
  const absl::StatusOr<Token> seed = random_token();
  if (!seed.ok()) return seed.status();
  uint64_t epoch = 0;
  for (size_t i = 0; i < 8; ++i) epoch = (epoch << 8) | (*seed)[i];
  bytes->set_daemon_epoch(epoch | 1);
  bytes_port = extension != nullptr ? &extension->wrap(*bytes, to_reactor) : bytes.get();
  memory = std::make_unique<RealSharedMemory>(*bytes, *fences,
                                              shadow_table_bytes(shadow_records(config)));
  return absl::OkStatus();
}

absl::Status Daemon::Parts::make_edges(const std::string& fallback_directory) {
  auto claimed = SocketDirectory::claim(config.socket, fallback_directory);
  if (!claimed.ok()) return claimed.status();
  directory.emplace(*std::move(claimed));
  engines = std::make_unique<EngineTable>(config.limits, *clock, [this](EngineId engine) {
    log.warning("an engine does not read its stream", {{"engine", absl::StrCat(engine.value)}});
    handles->cut(engine);
  });
  edge = std::make_unique<Edge>(*engines, *memory);
  reactor = std::make_unique<reactor::Reactor>(config.ledger, *clock, *edge, *bytes_port, *fences);
  engines->bind(*reactor);
  reactor->on_step([this](const reactor::StepReport& step) {
    times.observe(step);
    recorder.stepped(step);
    edge->stepped(step.event);
  });
  reactor->on_stream_room([this] { engines->stream_room(); });
  metrics = std::make_unique<Metrics>(*edge, times);
  return absl::OkStatus();
}

absl::Status Daemon::Parts::serve() {
  absl::StatusOr<UniqueFd> listening = directory->listen(directory->handles_path());
  if (!listening.ok()) return listening.status();
  const uint32_t own_uid = ::geteuid();
  auto served = HandleServer::start(
      {.config = config, .control_path = directory->control_path(), .own_uid = own_uid},
      *std::move(listening), *edge, *memory, *clock, log);
  if (!served.ok()) return served.status();
  handles = *std::move(served);
  edge->bind(*reactor, *handles);

  const absl::StatusOr<std::string> address = metrics->serve(config.metrics_listen);
  if (!address.ok()) return address.status();
  const ServiceFacts facts{.rules = {.page_tokens = config.ledger.page_tokens,
                                     .page_bytes = config.page_bytes,
                                     .mode = config.ledger.mode},
                           .config = config,
                           .version = MEMDECAY_VERSION,
                           .death_notice = handles->death_notice(),
                           .metrics_address = *address,
                           .own_uid = own_uid,
                           .started = clock->now(),
                           .started_unix = base::unix_seconds()};
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(make_memory_service(*edge, facts, *clock));
  services.push_back(make_orchestrator_service(*edge, facts));
  services.push_back(make_admin_service(*edge, recorder, facts, *clock));
  if (extension != nullptr) {
    for (auto& service : extension->services(*edge, *metrics, config)) {
      services.push_back(std::move(service));
    }
  }
  auto started = GrpcServer::start(*directory, std::move(services));
  if (!started.ok()) return started.status();
  grpc = *std::move(started);
  handles->open_door();
  reactor_thread = std::thread([this] { reactor->run(); });
  log.info("serving", {{"handles", directory->handles_path()},
                       {"control", directory->control_path()},
                       {"metrics", *address},
                       {"device_pages", absl::StrCat(config.ledger.device_pages)},
                       {"policy", config.ledger.policy.name}});
  return absl::OkStatus();
}

size_t Daemon::Parts::copies_in_flight() {
  base::Wake wake;
  size_t copies = 0;
  reactor->inspect([&](ledger::Ledger& ledger) {
    copies = ledger::report_status(ledger).copies_in_flight;
    wake.ring();
  });
  wake.wait();  // the reactor runs until after this
  return copies;
}

Daemon::Daemon(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Daemon::~Daemon() { stop(); }

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::start(Config config,
                                                      const std::string& fallback_directory,
                                                      const base::Log& log) {
  auto parts = std::make_unique<Parts>(std::move(config), log);
  absl::Status status = parts->make_world();
  if (status.ok()) status = parts->make_edges(fallback_directory);
  if (status.ok()) status = parts->serve();
  if (!status.ok()) return status;
  return std::unique_ptr<Daemon>(new Daemon(std::move(parts)));
}

absl::Status Daemon::reload(const Config& config) {
  base::Wake wake;
  absl::Status outcome;
  parts_->reactor->reconfigure(config.ledger, [&](absl::Status status) {
    outcome = std::move(status);
    wake.ring();
  });
  wake.wait();
  return outcome;
}

void Daemon::stop() {
  if (parts_ == nullptr || !parts_->reactor_thread.joinable()) return;
  Parts& p = *parts_;
  // 1. Nobody comes in any more, and engines are told.
  p.grpc->announce_end();
  p.handles->close_door();
  p.recorder.stop();
  base::Wake told;
  const RequestId drained = p.edge->expect([&told](const ledger::Reply&) { told.ring(); });
  p.edge->ask(drained, ledger::Event(ledger::Drain{.origin = {.request = drained}}));
  told.wait();  // the reactor lives until step 4, so the answer comes
  // 2. Copies in flight end, within limits.drain_ms.
  const Instant until = p.clock->now() + p.config.limits.drain;
  base::Wake nobody;
  while (p.copies_in_flight() > 0 && p.clock->now() < until) nobody.wait(kDrainLook);
  // 3. Callers get an answer, streams end.
  const absl::Status stopping = make_error({.code = ErrorCode::kUnavailable,
                                            .asked = "an answer",
                                            .there = "the daemon is stopping",
                                            .todo = "connect again",
                                            .retry_after_ms = 1000});
  p.edge->fail_all(stopping);
  p.engines->end_all();
  p.grpc->stop(kStreamsEnd);
  p.handles->stop();
  p.metrics->stop();  // a scrape under way may take a second or two to end
  // 4. The reactor last: everything above may have posted to it.
  p.reactor->stop();
  p.reactor_thread.join();
  p.edge->fail_all(stopping);
  p.directory->remove_sockets();
  p.log.info("stopped");
}

}  // namespace memdecay::server
