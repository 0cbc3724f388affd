// `raw handles|control hex=… | random=N seed=S`: bytes that are no protocol, on a socket of the
// daemon. See real_world.h.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "client/lib/handle_link.h"
#include "daemon/base/random.h"
#include "proto/contract/error.h"
#include "tests/scenario/real_world.h"
#include "tests/scenario/values.h"

namespace memdecay::scenario {
namespace {

absl::StatusOr<std::string> raw_bytes(const Settings& options) {
  std::string bytes;
  uint64_t count = 0;
  uint64_t seed = 1;
  for (const auto& [name, value] : options) {
    if (name == "hex") {
      bytes = WireWords::bytes(value);
      continue;
    }
    const absl::StatusOr<uint32_t> number = parse_count(value);
    if (!number.ok()) return number.status();
    if (name == "random") count = *number;
    if (name == "seed") seed = *number;
  }
  base::Random random(seed);
  for (uint64_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(random.next()));
  return bytes;
}

}  // namespace

absl::Status RealWorld::raw(const std::string& where, const Settings& options) {
  const absl::StatusOr<std::string> bytes = raw_bytes(options);
  if (!bytes.ok()) return bytes.status();
  const std::string path = where == "handles" ? client::handle_socket_path(daemon_->folder())
                                              : daemon_->folder() + "/control.sock";
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return make_error(ErrorCode::kUnavailable, path, std::strerror(errno));
  }
  // As far as the daemon reads; whether it hangs up is its own affair.
  [[maybe_unused]] const ssize_t sent =
      ::send(fd.get(), bytes->data(), bytes->size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  changed();
  return wait_for_lives();
}

}  // namespace memdecay::scenario
