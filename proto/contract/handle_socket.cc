// recvmsg and sendmsg with SCM_RIGHTS (see handle_socket.h).
#include "proto/contract/handle_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay {
namespace {

constexpr size_t kReadBytes = 16 * 1024;
constexpr size_t kMaxBufferedBytes = kReadBytes + kFrameHeaderBytes + kMaxFramePayloadBytes;
// Room for more than the kernel's own limit (SCM_MAX_FD = 253), so that too many descriptors are
// seen as such and closed by us, and not cut off silently.
constexpr size_t kControlFds = 256;

struct alignas(cmsghdr) ControlBuffer {
  std::array<char, CMSG_SPACE(kControlFds * sizeof(int))> bytes{};
};

std::string errno_text(int error) { return std::string(std::strerror(error)); }

std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Takes ownership of every descriptor in the message before anything can fail.
std::vector<UniqueFd> take_fds(msghdr& message) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

absl::Status connection_over(std::string there) {
  return make_error(ErrorCode::kUnavailable, "handle socket", std::move(there),
                    "connect again with back-off");
}

absl::Status bad_fds(std::string there) {
  return make_error(ErrorCode::kInvalidArgument, "descriptors on the handle socket",
                    std::move(there), "send exactly what each frame needs, at most 128 a message");
}

}  // namespace

absl::Status FrameReader::break_with(absl::Status status) {
  broken_ = status;
  fds_.clear();
  buffer_.clear();
  return status;
}

absl::StatusOr<FrameReader::Progress> FrameReader::read_some(int socket) {
  if (!broken_.ok()) return broken_;
  if (buffer_.size() > kMaxBufferedBytes) return Progress::kGotBytes;  // call next() first
  std::array<char, kReadBytes> chunk;
  ControlBuffer control;
  iovec io{.iov_base = chunk.data(), .iov_len = chunk.size()};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Progress::kWouldBlock;
  if (got < 0) return break_with(connection_over(errno_text(errno)));

  std::vector<UniqueFd> fds = take_fds(message);
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return break_with(bad_fds("more than this process could take; all closed"));
  }
  if (fds.size() > kMaxFdsPerMessage || fds_.size() + fds.size() > kMaxFdsPerMessage) {
    return break_with(bad_fds(absl::StrCat(fds_.size() + fds.size(), " at once; all closed")));
  }
  if (got == 0) return Progress::kEndOfFile;
  std::move(fds.begin(), fds.end(), std::back_inserter(fds_));
  buffer_.append(chunk.data(), static_cast<size_t>(got));
  return Progress::kGotBytes;
}

absl::StatusOr<std::optional<ReceivedFrame>> FrameReader::next() {
  if (!broken_.ok()) return broken_;
  if (buffer_.size() < kFrameHeaderBytes) {
    // The kernel delivers descriptors with the first byte of their frame.
    if (buffer_.empty() && !fds_.empty()) return break_with(bad_fds("no frame for them"));
    return std::optional<ReceivedFrame>();
  }
  const absl::StatusOr<FrameHeader> header = decode_frame_header(as_bytes(buffer_));
  if (!header.ok()) return break_with(header.status());
  const size_t whole = kFrameHeaderBytes + header->payload_bytes;
  if (buffer_.size() < whole) return std::optional<ReceivedFrame>();

  absl::StatusOr<Frame> frame = decode_frame(
      header->type, as_bytes(buffer_).subspan(kFrameHeaderBytes, header->payload_bytes));
  buffer_.erase(0, whole);
  const size_t wanted = frame_fds(header->type);
  if (fds_.size() < wanted) {
    return break_with(bad_fds(absl::StrCat("frame of type ", static_cast<int>(header->type),
                                           " came without its descriptor")));
  }
  std::vector<UniqueFd> fds;  // of a refused frame they are closed here
  for (size_t i = 0; i < wanted; ++i) {
    fds.push_back(std::move(fds_.front()));
    fds_.pop_front();
  }
  if (!frame.ok()) return frame.status();
  return std::optional<ReceivedFrame>(
      ReceivedFrame{.frame = *std::move(frame), .fds = std::move(fds)});
}

absl::Status FrameWriter::queue(const Frame& frame, std::vector<UniqueFd> fds) {
  absl::StatusOr<std::string> bytes = encode_frame(frame);
  if (!bytes.ok()) return bytes.status();
  if (fds.size() != frame_fds(frame_type(frame))) {
    return bad_fds(
        absl::StrCat(fds.size(), " for a frame of type ", static_cast<int>(frame_type(frame))));
  }
  if (queue_.size() >= kMaxQueuedFrames) {
    return make_error(ErrorCode::kResourceExhausted, "queue one more frame",
                      absl::StrCat(queue_.size(), " unread by the peer"), "close the connection");
  }
  queue_.push_back({.bytes = *std::move(bytes), .sent = 0, .fds = std::move(fds)});
  return absl::OkStatus();
}

absl::StatusOr<FrameWriter::Progress> FrameWriter::flush(int socket) {
  while (!queue_.empty()) {
    Outgoing& frame = queue_.front();
    iovec io{.iov_base = frame.bytes.data() + frame.sent,
             .iov_len = frame.bytes.size() - frame.sent};
    ControlBuffer control;
    msghdr message{};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    if (!frame.fds.empty()) {
      message.msg_control = control.bytes.data();
      message.msg_controllen = CMSG_SPACE(frame.fds.size() * sizeof(int));
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(frame.fds.size() * sizeof(int));
      for (size_t i = 0; i < frame.fds.size(); ++i) {
        const int fd = frame.fds[i].get();
        std::memcpy(CMSG_DATA(part) + i * sizeof(int), &fd, sizeof(int));
      }
    }
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Progress::kWouldBlock;
    if (sent < 0) return connection_over(errno_text(errno));
    frame.fds.clear();  // they went with the first byte
    frame.sent += static_cast<size_t>(sent);
    if (frame.sent == frame.bytes.size()) queue_.pop_front();
  }
  return Progress::kAllSent;
}

absl::StatusOr<UniqueFd> connect_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return make_error(
        ErrorCode::kInvalidArgument, absl::StrCat("connect to \"", path, "\""),
        absl::StrCat("a socket path has 1 to ", sizeof(address.sun_path) - 1, " bytes"),
        "use a shorter path");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return connection_over(errno_text(errno));
  int done = -1;
  do {
    done = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  } while (done != 0 && errno == EINTR);
  if (done != 0) {
    const int error = errno;
    if (error == EACCES || error == EPERM) {
      return make_error(ErrorCode::kPermission, absl::StrCat("connect to ", path),
                        errno_text(error), "join the group that owns the socket");
    }
    return make_error({.code = ErrorCode::kUnavailable,
                       .asked = absl::StrCat("connect to ", path),
                       .there = errno_text(error),
                       .todo = "is memdecayd running there?",
                       .retry_after_ms = 100});
  }
  return socket;
}

}  // namespace memdecay
