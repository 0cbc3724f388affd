// The directory of the daemon's sockets: one daemon holds it by a lock file, files of a dead one
// are taken over, and who may connect is a matter of mode and group. Thread: any; used at the
// start. Errors: busy says who holds it; permission and unavailable name the path, the mode and the
// owner. Not here: what is served on the sockets.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/server/config.h"
#include "proto/contract/unique_fd.h"

namespace memdecay::server {

class SocketDirectory {
 public:
  // Makes the directory if need be and locks it. `fallback` is used when the configuration names
  // none. Stale socket files are removed.
  static absl::StatusOr<SocketDirectory> claim(const SocketConfig& config,
                                               const std::string& fallback);

  std::string handles_path() const { return path_ + "/handles.sock"; }
  std::string control_path() const { return path_ + "/control.sock"; }
  const std::string& path() const { return path_; }

  // A listening, non-blocking, close-on-exec stream socket with the configured mode and group.
  absl::StatusOr<UniqueFd> listen(const std::string& socket_path) const;
  // Gives a socket file that somebody else made the configured mode and group.
  absl::Status set_access(const std::string& socket_path) const;
  // Removes the socket files; the lock goes with the object.
  void remove_sockets() const;

 private:
  SocketDirectory(std::string path, UniqueFd lock, uint32_t mode, int group)
      : path_(std::move(path)), lock_(std::move(lock)), mode_(mode), group_(group) {}

  std::string path_;
  UniqueFd lock_;
  uint32_t mode_;
  int group_;  // -1: leave it
};

}  // namespace memdecay::server
