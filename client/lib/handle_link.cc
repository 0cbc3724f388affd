// HandleLink: Hello, Welcome and descriptors.
// Thread: one; see handle_link.h.
#include "client/lib/handle_link.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/steady_clock.h"
#include "proto/contract/error.h"

namespace memdecay::client {
namespace {

constexpr char kSocketName[] = "handles.sock";

absl::Status over(const char* there) {
  return make_error({ErrorCode::kUnavailable, "the daemon's handle socket", there,
                     "see that memdecayd runs; the client connects again by itself", 100});
}

absl::Status send_hello(int socket, const Hello& hello, Instant deadline) {
  FrameWriter writer;
  if (absl::Status status = writer.queue(hello); !status.ok()) return status;
  for (;;) {
    const auto progress = writer.flush(socket);
    if (!progress.ok()) return over("it closed while we said hello");
    if (*progress == FrameWriter::Progress::kAllSent) return absl::OkStatus();
    pollfd wait{socket, POLLOUT, 0};
    if (::poll(&wait, 1, left_milliseconds(deadline)) == 0) return over("it takes no bytes");
  }
}

}  // namespace

std::string handle_socket_path(const std::string& directory) {
  if (!directory.empty()) return directory + "/" + kSocketName;
  if (const char* runtime = ::getenv("XDG_RUNTIME_DIR"); runtime != nullptr) {
    std::string path = std::string(runtime) + "/memdecay/" + kSocketName;
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0) return path;
  }
  return std::string("/run/memdecay/") + kSocketName;
}

absl::StatusOr<HandleLink> HandleLink::attach(const std::string& path, const Hello& hello,
                                              Instant deadline) {
  absl::StatusOr<UniqueFd> socket = connect_unix(path);
  if (!socket.ok()) return socket.status();
  HandleLink link(*std::move(socket));
  if (absl::Status status = send_hello(link.fd(), hello, deadline); !status.ok()) return status;
  for (;;) {
    auto frames = link.receive();
    if (!frames.ok()) return frames.status();
    bool welcome = false;
    for (ReceivedFrame& received : *frames) {
      if (const auto* refused = std::get_if<Refused>(&received.frame); refused && !welcome) {
        return make_error(refused->code, absl::StrCat("attach at ", path), refused->text,
                          refused->code == ErrorCode::kVersionMismatch
                              ? "use a client and a daemon of the same major version"
                              : "see the daemon's log and configuration");
      }
      if (const auto* granted = std::get_if<Welcome>(&received.frame)) {
        link.welcome_ = *granted;
        welcome = true;
      } else {
        link.early_.push_back(std::move(received));
      }
    }
    if (welcome) return link;
    if (left_milliseconds(deadline) == 0) return over("it does not answer hello");
    link.wait_readable(deadline);
  }
}

absl::StatusOr<std::vector<ReceivedFrame>> HandleLink::receive() {
  std::vector<ReceivedFrame> out = std::exchange(early_, {});
  for (;;) {
    const auto progress = reader_.read_some(fd());
    const bool ended = !progress.ok() || *progress == FrameReader::Progress::kEndOfFile;
    for (;;) {
      auto next = reader_.next();
      if (!next.ok()) {
        if (reader_.broken()) return over("it sent bytes that are no frames");
        continue;  // one frame of a newer minor version was skipped
      }
      if (!next->has_value()) break;
      out.push_back(*std::move(*next));
    }
    if (ended && out.empty()) return over("it closed");
    if (ended || *progress == FrameReader::Progress::kWouldBlock) return out;
  }
}

void HandleLink::wait_readable(Instant deadline) const {
  pollfd wait{fd(), POLLIN, 0};
  ::poll(&wait, 1, left_milliseconds(deadline));
}

void HandleLink::say_goodbye() {
  FrameWriter writer;
  if (writer.queue(Goodbye{}).ok()) (void)writer.flush(fd());
}

}  // namespace memdecay::client
