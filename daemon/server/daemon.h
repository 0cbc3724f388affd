// The daemon put together: device, tiers, reactor, edges, in the order in which they need each
// other; taken apart in the one order that loses nothing (stop()).
// Thread: start, reload and stop on one (main's); what runs in between has its own threads.
// Not here: flags, signals, the file (main.cc).
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/log.h"
#include "daemon/server/config.h"

namespace memdecay::server {

class Daemon {
 public:
  // `fallback_directory`: where the sockets go if the configuration does not say.
  static absl::StatusOr<std::unique_ptr<Daemon>> start(Config config,
                                                       const std::string& fallback_directory,
                                                       const base::Log& log);
  ~Daemon();

  // What can change while running changes; anything refused changes nothing.
  absl::Status reload(const Config& config);
  // No new sessions, copies in flight end (bounded by limits.drain_ms), engines are told, threads
  // end, socket files go.
  void stop();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace memdecay::server
