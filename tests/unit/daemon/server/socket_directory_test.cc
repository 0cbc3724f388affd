// One daemon a directory: the lock decides, stale files go, other files stay.
// Thread: one. Works in a temporary directory.
#include "daemon/server/socket_directory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <optional>
#include <string>

#include "proto/contract/error.h"
#include "proto/contract/handle_socket.h"

namespace memdecay::server {
namespace {

class SocketDirectoryTest : public testing::Test {
 protected:
  SocketDirectoryTest() {
    std::string name = "/tmp/mdtestXXXXXX";
    root_ = ::mkdtemp(name.data());
    config_.directory = root_ + "/a/b";
  }
  ~SocketDirectoryTest() override { std::system(("rm -rf " + root_).c_str()); }

  std::string root_;
  SocketConfig config_;
};

TEST_F(SocketDirectoryTest, second_claim_is_busy_and_names_the_holder) {
  const auto first = SocketDirectory::claim(config_, "");
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = SocketDirectory::claim(config_, "");
  EXPECT_EQ(error_code(second.status()), ErrorCode::kBusy);
  EXPECT_NE(error_detail(second.status()).there.find(std::to_string(::getpid())),
            std::string::npos);
}

TEST_F(SocketDirectoryTest, stale_socket_is_taken_over) {
  {
    const auto dead = SocketDirectory::claim(config_, "");
    ASSERT_TRUE(dead.ok());
    ASSERT_TRUE(dead->listen(dead->handles_path()).ok());
  }
  const auto next = SocketDirectory::claim(config_, "");
  ASSERT_TRUE(next.ok()) << next.status();
  const auto socket = next->listen(next->handles_path());
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_TRUE(connect_unix(next->handles_path()).ok());
  struct stat info {};
  ASSERT_EQ(::stat(next->handles_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
}

TEST_F(SocketDirectoryTest, file_that_is_no_socket_stays) {
  config_.directory = root_;
  std::ofstream(root_ + "/handles.sock") << "precious";
  EXPECT_EQ(error_code(SocketDirectory::claim(config_, "").status()), ErrorCode::kBusy);
  struct stat info {};
  EXPECT_EQ(::stat((root_ + "/handles.sock").c_str(), &info), 0);
}

TEST_F(SocketDirectoryTest, unusable_places_are_refused_in_words) {
  config_.directory = "relative";
  EXPECT_EQ(error_code(SocketDirectory::claim(config_, "").status()), ErrorCode::kInvalidArgument);
  config_.directory = "/" + std::string(200, 'x');
  EXPECT_EQ(error_code(SocketDirectory::claim(config_, "").status()), ErrorCode::kInvalidArgument);
  config_.directory = "/proc/nowhere";
  EXPECT_FALSE(SocketDirectory::claim(config_, "").ok());
  config_.directory = root_;
  config_.group = "no-such-group-here";
  EXPECT_EQ(error_code(SocketDirectory::claim(config_, "").status()), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace memdecay::server
