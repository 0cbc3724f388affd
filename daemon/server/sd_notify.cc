// See sd_notify.h. A supervisor that does not listen is no reason to fail: errors are dropped.
#include "daemon/server/sd_notify.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "proto/contract/unique_fd.h"

namespace memdecay::server {

void sd_notify(const std::string& socket, std::string_view state) {
  sockaddr_un address{};
  if (socket.empty() || socket.size() >= sizeof(address.sun_path)) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.data(), socket.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return;
  const socklen_t length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  [[maybe_unused]] const ssize_t sent =
      ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), length);
}

}  // namespace memdecay::server
