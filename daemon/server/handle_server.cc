// See handle_server.h.
#include "daemon/server/handle_server.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "daemon/server/handle_loop.h"

namespace memdecay::server {

absl::StatusOr<std::unique_ptr<HandleServer>> HandleServer::start(HandleOptions options,
                                                                  UniqueFd listening, Edge& edge,
                                                                  SharedMemory& memory,
                                                                  const base::Clock& clock,
                                                                  const base::Log& log) {
  auto loop = std::make_unique<HandleLoop>(std::move(options), std::move(listening), edge, memory,
                                           clock, log);
  if (absl::Status status = loop->prepare(); !status.ok()) return status;
  return std::unique_ptr<HandleServer>(new HandleServer(std::move(loop)));
}

HandleServer::HandleServer(std::unique_ptr<HandleLoop> loop)
    : loop_(std::move(loop)), thread_([this] { loop_->run(); }) {}

HandleServer::~HandleServer() { stop(); }

void HandleServer::stop() {
  if (!thread_.joinable()) return;
  loop_->stop();
  thread_.join();
}

void HandleServer::send_slab(EngineId engine, SlabHandle slab) {
  loop_->post([this, engine, handle = std::move(slab)]() mutable {
    loop_->send_slab(engine, std::move(handle));
  });
}

void HandleServer::cut(EngineId engine) {
  loop_->post([this, engine] { loop_->cut(engine); });
}

void HandleServer::open_door() {
  loop_->post([this] { loop_->open_door(); });
}

void HandleServer::close_door() {
  loop_->post([this] { loop_->close_door(); });
}

std::string HandleServer::death_notice() const {
  const UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  return self ? "pidfd" : "socket";
}

}  // namespace memdecay::server
