// Frames and descriptors over a connected Unix stream socket, for daemon and client alike.
// FrameReader takes what recvmsg gives (partial frames, several at once, descriptors) and yields
// whole frames; FrameWriter queues frames and sends what the socket takes. Neither ever blocks.
// Why: SCM_RIGHTS leaks descriptors unless every path closes them; here every received descriptor
// is O_CLOEXEC and owned from the first instruction on.
// Thread: one thread per object. Not here: event loops, listening, credentials, frame meaning.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/contract/handle_frames.h"
#include "proto/contract/unique_fd.h"

namespace memdecay {

struct ReceivedFrame {
  Frame frame;
  std::vector<UniqueFd> fds;  // exactly frame_fds(type) of them
};

class FrameReader {
 public:
  enum class Progress : uint8_t { kGotBytes, kWouldBlock, kEndOfFile };

  // One recvmsg. An error means that the connection is over: descriptors that came with it are
  // closed, and every later call gives the same error.
  absl::StatusOr<Progress> read_some(int socket);

  // The next whole frame; nothing if more bytes are needed. invalid_argument with broken() false: a
  // frame was refused and skipped, call again. With broken() true: the stream makes no sense.
  absl::StatusOr<std::optional<ReceivedFrame>> next();

  bool broken() const { return !broken_.ok(); }
  // Bytes of a frame that has not arrived whole (after end of file: it was truncated).
  size_t pending_bytes() const { return buffer_.size(); }

 private:
  absl::Status break_with(absl::Status status);

  std::string buffer_;
  std::deque<UniqueFd> fds_;  // received, not yet claimed by a frame
  absl::Status broken_;
};

class FrameWriter {
 public:
  enum class Progress : uint8_t { kAllSent, kWouldBlock };
  static constexpr size_t kMaxQueuedFrames = 1024;

  // Queues one frame with its descriptors (frame_fds(type) of them, kept open until sent).
  // resource_exhausted when the peer has left kMaxQueuedFrames unread: close the connection.
  absl::Status queue(const Frame& frame, std::vector<UniqueFd> fds = {});

  // Sends what the socket takes. An error means that the connection is over.
  absl::StatusOr<Progress> flush(int socket);

  bool empty() const { return queue_.empty(); }

 private:
  struct Outgoing {
    std::string bytes;
    size_t sent = 0;
    std::vector<UniqueFd> fds;  // go out with the first byte
  };
  std::deque<Outgoing> queue_;
};

// A connected, non-blocking, close-on-exec stream socket. unavailable: nobody listens there.
absl::StatusOr<UniqueFd> connect_unix(const std::string& path);

}  // namespace memdecay
