// See peer.h.
#include "daemon/server/peer.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::server {
namespace {

#ifndef SO_PEERPIDFD
constexpr int kPeerPidfd = 77;  // Linux 6.5; Debian 12's headers do not have it yet
#else
constexpr int kPeerPidfd = SO_PEERPIDFD;
#endif

}  // namespace

absl::StatusOr<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return make_error(ErrorCode::kUnavailable, "credentials of a peer", std::strerror(errno), "");
  }
  Peer peer{.uid = credentials.uid, .gid = credentials.gid, .pid = credentials.pid};
  int pidfd = -1;
  length = sizeof(pidfd);
  if (::getsockopt(socket, SOL_SOCKET, kPeerPidfd, &pidfd, &length) == 0 && pidfd >= 0) {
    peer.pidfd = UniqueFd(pidfd);
    ::fcntl(pidfd, F_SETFD, FD_CLOEXEC);
    peer.death = DeathConfirmation::kPeerPidfd;
    return peer;
  }
  // The number may have been given to another process meanwhile; better than nothing, and named.
  pidfd = static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0));
  if (pidfd >= 0) {
    peer.pidfd = UniqueFd(pidfd);
    peer.death = DeathConfirmation::kPidfdOpen;
  }
  return peer;
}

absl::StatusOr<TenantId> tenant_of(const Peer& peer, const Config& config, uint32_t own_uid) {
  for (size_t i = 0; i < config.identities.size(); ++i) {
    const TenantIdentity& identity = config.identities[i];
    if (!identity.uid.has_value() && !identity.gid.has_value()) continue;
    if (identity.uid.value_or(peer.uid) != peer.uid) continue;
    if (identity.gid.value_or(peer.gid) != peer.gid) continue;
    return TenantId{static_cast<uint32_t>(i + 1)};
  }
  if (peer.uid == own_uid) return TenantId{1};
  return make_error(ErrorCode::kPermission,
                    absl::StrCat("attach as uid ", peer.uid, ", gid ", peer.gid),
                    "no tenant of the configuration has this uid and gid",
                    "add tenants: [{name: …, uid: …}] to the daemon's configuration");
}

ProcessState process_state(pid_t pid) {
  const UniqueFd file(::open(absl::StrCat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return ProcessState::kUnknown;
  std::array<char, 512> text{};
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got <= 0) return ProcessState::kUnknown;
  // "pid (name, which may hold anything) S …"
  const std::string_view line(text.data(), static_cast<size_t>(got));
  const size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= line.size()) {
    return ProcessState::kUnknown;
  }
  const char state = line[name_end + 2];
  return state == 'T' || state == 't' ? ProcessState::kStopped : ProcessState::kRunning;
}

}  // namespace memdecay::server
