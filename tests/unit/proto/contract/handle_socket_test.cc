// Frames and descriptors over a socket pair: partial reads, bad peers, no leaked descriptor.
#include "proto/contract/handle_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "proto/contract/error.h"
#include "tests/unit/proto/contract/example_layout.h"

namespace memdecay {
namespace {

int open_descriptors() {
  DIR* directory = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

UniqueFd some_fd() { return UniqueFd(memfd_create("test", MFD_CLOEXEC)); }

uint64_t inode(int fd) {
  struct stat info {};
  EXPECT_EQ(fstat(fd, &info), 0);
  return info.st_ino;
}

std::vector<UniqueFd> one(UniqueFd fd) {
  std::vector<UniqueFd> fds;
  fds.push_back(std::move(fd));
  return fds;
}

// Sends bytes with `count` descriptors in one message, as a careless or hostile peer would.
void send_raw(int socket, const std::string& bytes, size_t count) {
  std::vector<UniqueFd> fds(count);
  std::vector<int> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    fds[i] = some_fd();
    numbers[i] = fds[i].get();
  }
  std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
  iovec io{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(part), numbers.data(), count * sizeof(int));
  }
  ASSERT_EQ(sendmsg(socket, &message, 0), static_cast<ssize_t>(bytes.size()));
}

class HandleSocket : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = open_descriptors();
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    left_.reset(ends[0]);
    right_.reset(ends[1]);
  }
  void TearDown() override {
    left_.reset();
    right_.reset();
    reader_ = FrameReader();
    EXPECT_EQ(open_descriptors(), before_) << "descriptors leaked";
  }

  int before_ = 0;
  UniqueFd left_;
  UniqueFd right_;
  FrameReader reader_;
  FrameWriter writer_;
};

TEST_F(HandleSocket, frames_arrive_in_order_with_their_own_descriptors) {
  UniqueFd slab = some_fd();
  UniqueFd timeline = some_fd();
  const uint64_t slab_inode = inode(slab.get());
  const uint64_t timeline_inode = inode(timeline.get());
  const SlabFd slab_frame{.slab = {1}, .bytes = 8192, .page_bytes = 4096, .slots = 2};
  ASSERT_TRUE(writer_.queue(slab_frame, one(std::move(slab))).ok());
  ASSERT_TRUE(writer_.queue(SlabGone{.slab = {9}}).ok());
  ASSERT_TRUE(writer_.queue(TimelineFd{.member = 4}, one(std::move(timeline))).ok());
  ASSERT_EQ(*writer_.flush(left_.get()), FrameWriter::Progress::kAllSent);

  std::vector<ReceivedFrame> got;
  while (got.size() < 3) {
    ASSERT_EQ(*reader_.read_some(right_.get()), FrameReader::Progress::kGotBytes);
    auto next = reader_.next();
    for (; next.ok() && next->has_value(); next = reader_.next()) got.push_back(std::move(**next));
    ASSERT_TRUE(next.ok());
  }
  EXPECT_EQ(got[0].frame, Frame(slab_frame));
  EXPECT_EQ(inode(got[0].fds.at(0).get()), slab_inode);
  EXPECT_NE(fcntl(got[0].fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(got[1].frame, Frame(SlabGone{.slab = {9}}));
  EXPECT_TRUE(got[1].fds.empty());
  EXPECT_EQ(got[2].frame, Frame(TimelineFd{.member = 4}));
  EXPECT_EQ(inode(got[2].fds.at(0).get()), timeline_inode);
  EXPECT_EQ(*reader_.read_some(right_.get()), FrameReader::Progress::kWouldBlock);
}

TEST_F(HandleSocket, a_frame_may_arrive_byte_by_byte) {
  const Frame frame = Refused{.code = ErrorCode::kBusy, .text = "held"};
  const std::string bytes = *encode_frame(frame);
  for (size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_FALSE(reader_.next()->has_value()) << i;
    send_raw(left_.get(), bytes.substr(i, 1), 0);
    ASSERT_TRUE(reader_.read_some(right_.get()).ok());
  }
  EXPECT_EQ((*reader_.next())->frame, frame);
}

TEST_F(HandleSocket, a_truncated_frame_is_seen_at_end_of_file) {
  send_raw(left_.get(), encode_frame(SlabGone{.slab = {1}})->substr(0, 14), 0);
  left_.reset();
  ASSERT_EQ(*reader_.read_some(right_.get()), FrameReader::Progress::kGotBytes);
  EXPECT_FALSE(reader_.next()->has_value());
  EXPECT_EQ(*reader_.read_some(right_.get()), FrameReader::Progress::kEndOfFile);
  EXPECT_EQ(reader_.pending_bytes(), 14u);
}

TEST_F(HandleSocket, a_bad_payload_is_refused_and_the_connection_survives) {
  std::string bad = *encode_frame(SlabFd{.slab = {1}, .bytes = 1, .page_bytes = 1, .slots = 1});
  bad[kFrameHeaderBytes] = 0;  // slab 0
  send_raw(left_.get(), bad, 1);
  send_raw(left_.get(), *encode_frame(Goodbye{}), 0);
  ASSERT_TRUE(reader_.read_some(right_.get()).ok());
  EXPECT_EQ(error_code(reader_.next().status()), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(reader_.broken());
  ASSERT_TRUE(reader_.read_some(right_.get()).ok());
  EXPECT_EQ((*reader_.next())->frame, Frame(Goodbye{}));
}

TEST_F(HandleSocket, garbage_breaks_the_connection) {
  send_raw(left_.get(), "GET / HTTP/1.1\r\n\r\n", 1);
  ASSERT_TRUE(reader_.read_some(right_.get()).ok());
  EXPECT_EQ(error_code(reader_.next().status()), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(reader_.broken());
  EXPECT_FALSE(reader_.read_some(right_.get()).ok());
}

TEST_F(HandleSocket, too_many_descriptors_are_refused_and_closed) {
  send_raw(left_.get(), *encode_frame(Goodbye{}), kMaxFdsPerMessage + 1);
  EXPECT_EQ(error_code(reader_.read_some(right_.get()).status()), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(reader_.broken());
}

TEST_F(HandleSocket, descriptors_without_a_frame_for_them_are_refused) {
  send_raw(left_.get(), *encode_frame(Goodbye{}), 1);
  ASSERT_TRUE(reader_.read_some(right_.get()).ok());
  EXPECT_TRUE(reader_.next()->has_value());
  EXPECT_EQ(error_code(reader_.next().status()), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(reader_.broken());
}

TEST_F(HandleSocket, a_frame_without_its_descriptor_is_refused) {
  send_raw(left_.get(), *encode_frame(TimelineFd{.member = 1}), 0);
  ASSERT_TRUE(reader_.read_some(right_.get()).ok());
  EXPECT_EQ(error_code(reader_.next().status()), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(reader_.broken());
}

TEST_F(HandleSocket, a_peer_that_does_not_read_fills_a_bounded_queue) {
  absl::Status status;
  size_t queued = 0;
  for (; queued < 100'000 && status.ok(); ++queued) {
    status = writer_.queue(TimelineFd{.member = 1}, one(some_fd()));
    if (status.ok()) {
      ASSERT_TRUE(writer_.flush(left_.get()).ok());
    }
  }
  EXPECT_EQ(error_code(status), ErrorCode::kResourceExhausted);
  EXPECT_EQ(*writer_.flush(left_.get()), FrameWriter::Progress::kWouldBlock);
  // Everything that was accepted arrives once the peer reads.
  size_t arrived = 0;
  while (arrived + 1 < queued) {
    const auto progress = reader_.read_some(right_.get());
    ASSERT_TRUE(progress.ok()) << progress.status();
    for (auto next = reader_.next(); next.ok() && next->has_value(); next = reader_.next()) {
      ASSERT_EQ((*next)->fds.size(), 1u);
      ++arrived;
    }
    ASSERT_TRUE(writer_.flush(left_.get()).ok());
  }
  EXPECT_TRUE(writer_.empty());
}

TEST_F(HandleSocket, a_closed_peer_is_an_error_and_not_a_signal) {
  right_.reset();
  ASSERT_TRUE(writer_.queue(Goodbye{}).ok());
  EXPECT_EQ(error_code(writer_.flush(left_.get()).status()), ErrorCode::kUnavailable);
}

TEST_F(HandleSocket, the_number_of_descriptors_must_fit_the_frame) {
  EXPECT_EQ(error_code(writer_.queue(TimelineFd{.member = 1})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(writer_.queue(Goodbye{}, one(some_fd()))), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(writer_.empty());
}

TEST_F(HandleSocket, random_streams_never_crash_or_leak) {
  SeededNumbers numbers(47);
  for (int round = 0; round < 2'000; ++round) {
    std::string bytes;
    for (int i = 0; i < 3; ++i) bytes += *encode_frame(SlabGone{.slab = {1}});
    const uint64_t changes = numbers.below(3);
    for (uint64_t i = 0; i < changes; ++i) {
      bytes[numbers.below(bytes.size())] = static_cast<char>(numbers.below(256));
    }
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    UniqueFd sender(ends[0]);
    const UniqueFd receiver(ends[1]);
    send_raw(sender.get(), bytes, numbers.below(3));
    sender.reset();
    FrameReader reader;
    auto progress = reader.read_some(receiver.get());
    while (progress.ok() && *progress == FrameReader::Progress::kGotBytes) {
      for (int i = 0; i < 8 && !reader.broken(); ++i) (void)reader.next();
      progress = reader.read_some(receiver.get());
    }
  }
}

TEST(ConnectUnix, says_why_not) {
  EXPECT_EQ(error_code(connect_unix("/nowhere/at/all.sock").status()), ErrorCode::kUnavailable);
  EXPECT_EQ(error_code(connect_unix("").status()), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(connect_unix(std::string(200, 'x')).status()), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace memdecay
