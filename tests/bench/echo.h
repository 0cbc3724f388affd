// A bare gRPC bidirectional stream over a Unix socket that sends each message back: the least that
// a call over the engine's stream can cost. Messages are those that the stream has, so that
// encoding is the same; server and client use the callback API, the server is a process of its own,
// as the daemon is. Thread: the caller's, beside gRPC's.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace memdecay::bench {

// Serves until standard input ends; says "ready" on standard output before. Its exit code.
int serve_echo(const std::string& socket_path);

class EchoClient {
 public:
  static absl::StatusOr<std::unique_ptr<EchoClient>> connect(const std::string& socket_path);
  virtual ~EchoClient() = default;
  // Sends one message and waits for its answer.
  virtual absl::Status round_trip() = 0;
};

}  // namespace memdecay::bench
