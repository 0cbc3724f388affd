// Who is at the other end of a Unix socket, and whether it still lives.
// Thread: any. Not here: what follows from it (handle_server.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "daemon/server/config.h"
#include "proto/contract/handle_frames.h"
#include "proto/contract/ids.h"
#include "proto/contract/unique_fd.h"

namespace memdecay::server {

struct Peer {
  uint32_t uid = 0;
  uint32_t gid = 0;
  pid_t pid = 0;
  UniqueFd pidfd;  // readable once the process has exited; none with kSocketOnly
  DeathConfirmation death = DeathConfirmation::kSocketOnly;
};

// SO_PEERCRED, and SO_PEERPIDFD or pidfd_open.
absl::StatusOr<Peer> peer_of(int socket);

// The tenant of a peer: the first whose uid and gid match what the configuration says; `own_uid`
// belongs to the first tenant if none does. permission names uid and gid.
absl::StatusOr<TenantId> tenant_of(const Peer& peer, const Config& config, uint32_t own_uid);

// Stopped by a signal or a debugger, as /proc says; kUnknown where it does not say.
enum class ProcessState : uint8_t { kRunning, kStopped, kUnknown };
ProcessState process_state(pid_t pid);

}  // namespace memdecay::server
