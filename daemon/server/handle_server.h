// The handle socket's server: who attaches, which descriptors they get, and when they are gone.
// A connection says Hello and becomes a member of an engine; its end of file is the member's death
// notice, the process' pidfd the confirmation. An engine is gone when all its members are; one that
// closed its sockets and lives is only disconnected and may come back with its token.
//
// Thread: one of its own (epoll); the public functions on any. Attach and Reattach are decided by
// the ledger; their answers come on the reactor's thread and are passed over through a queue.
// Bounds: limits.connections sockets, limits.hello_ms until a whole Hello, kMaxRefusedFrames bad
// frames, FrameWriter::kMaxQueuedFrames unread frames: beyond it that connection alone is closed.
// Not here: the engines' streams (engine_table.h, memory_service.cc), making descriptors
// (shared_memory.h), socket files (socket_directory.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/server/config.h"
#include "daemon/server/edge.h"
#include "daemon/server/shared_memory.h"
#include "proto/contract/unique_fd.h"

namespace memdecay::server {

class HandleLoop;

struct HandleOptions {
  Config config;             // tenants, page size, limits
  std::string control_path;  // told to every member
  uint32_t own_uid = 0;
};

class HandleServer final : public HandleLink {
 public:
  // `listening` comes from SocketDirectory. Everything else outlives the server.
  static absl::StatusOr<std::unique_ptr<HandleServer>> start(HandleOptions options,
                                                             UniqueFd listening, Edge& edge,
                                                             SharedMemory& memory,
                                                             const base::Clock& clock,
                                                             const base::Log& log);
  ~HandleServer() override;

  void send_slab(EngineId engine, SlabHandle slab) override;
  // Closes the engine's connections: it does not read its stream.
  void cut(EngineId engine);
  // Connections are taken from here on: everything that they need is there.
  void open_door();
  // No new connections from now on.
  void close_door();
  // Closes everything and joins the thread.
  void stop();

  // "pidfd" or "socket": what this machine can do, for status.
  std::string death_notice() const;

 private:
  explicit HandleServer(std::unique_ptr<HandleLoop> loop);

  std::unique_ptr<HandleLoop> loop_;
  std::thread thread_;
};

}  // namespace memdecay::server
