// HandleLink: this process's connection to the daemon's handle socket: says Hello, gets Welcome,
// and from then on receives descriptors. Its end of file is how the daemon notices our death, so it
// stays open as long as the client lives.
// Thread: one (the keeper; before it starts, the one that connects). Not here: mapping what arrives
// (slab_map.h), when to connect again (client_keeper.cc).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/clock.h"
#include "proto/contract/handle_frames.h"
#include "proto/contract/handle_socket.h"
#include "proto/contract/unique_fd.h"

namespace memdecay::client {

class HandleLink {
 public:
  // Connects and waits for the answer. unavailable: nobody there; deadline; or what the daemon
  // refused with.
  static absl::StatusOr<HandleLink> attach(const std::string& path, const Hello& hello,
                                           Instant deadline);

  const Welcome& welcome() const { return welcome_; }
  int fd() const { return socket_.get(); }
  // Everything that has arrived; unavailable: the connection is over. Never blocks.
  absl::StatusOr<std::vector<ReceivedFrame>> receive();
  // Waits until something arrives or the deadline is over.
  void wait_readable(Instant deadline) const;
  // Goodbye, as far as the socket takes it.
  void say_goodbye();

 private:
  explicit HandleLink(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
  FrameReader reader_;
  Welcome welcome_;
  std::vector<ReceivedFrame> early_;  // came with the Welcome
};

// Where the socket is: `directory`, else the user's runtime directory, else the system's.
std::string handle_socket_path(const std::string& directory);

}  // namespace memdecay::client
