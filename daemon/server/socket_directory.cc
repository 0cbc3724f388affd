// Locks with flock(2): the kernel lets go of it when the daemon dies, however it dies, so a file
// that is left behind never blocks the next start (see socket_directory.h).
#include "daemon/server/socket_directory.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/values.h"
#include "proto/contract/error.h"

namespace memdecay::server {
namespace {

constexpr int kBacklog = 128;

absl::Status failed(std::string asked, int error, std::string todo) {
  const bool denied = error == EACCES || error == EPERM;
  return make_error(
      denied ? ErrorCode::kPermission : ErrorCode::kUnavailable, std::move(asked),
      absl::StrCat(std::strerror(error), " (uid ", ::geteuid(), ", gid ", ::getegid(), ")"),
      std::move(todo));
}

absl::StatusOr<int> group_of(const std::string& name) {
  if (name.empty()) return -1;
  const absl::StatusOr<uint64_t> number = base::parse_count(name, {.least = 0, .most = 0x7fffffff});
  if (number.ok()) return static_cast<int>(*number);
  group entry{};
  group* found = nullptr;
  std::vector<char> buffer(16 * 1024);
  ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return static_cast<int>(found->gr_gid);
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("socket.group ", name),
                    "there is no such group", "create it or give its number");
}

// Every missing part of the path; only the last one gets the group.
absl::Status make_directory(const std::string& path, int group) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    ::mkdir(path.substr(0, slash).c_str(), 0755);
  }
  if (::mkdir(path.c_str(), 0750) == 0) {
    if (group >= 0 &&
        ::chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(group)) != 0) {
      return failed(absl::StrCat("give ", path, " to group ", group), errno,
                    "run with that group or as root");
    }
    return absl::OkStatus();
  }
  struct stat info {};
  if (errno == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return absl::OkStatus();
  }
  return failed(absl::StrCat("make directory ", path), errno, "set socket.directory");
}

absl::Status held_by_another(int lock, const std::string& path) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(lock, text.data(), text.size() - 1, 0);
  std::string_view pid(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  while (!pid.empty() && (pid.back() == '\n' || pid.back() == '\0')) pid.remove_suffix(1);
  return make_error(ErrorCode::kBusy, absl::StrCat("serve in ", path),
                    absl::StrCat("another memdecayd, pid ",
                                 pid.empty() ? std::string("unknown") : std::string(pid),
                                 ", holds ", path, "/daemon.lock"),
                    "stop it, or set another socket.directory");
}

absl::Status remove_stale(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return make_error(ErrorCode::kBusy, absl::StrCat("make socket ", path),
                      "there is a file of that name that is no socket", "move it away");
  }
  if (::unlink(path.c_str()) != 0) {
    return failed(absl::StrCat("remove the stale socket ", path), errno, "remove it by hand");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SocketDirectory> SocketDirectory::claim(const SocketConfig& config,
                                                       const std::string& fallback) {
  const std::string path = config.directory.empty() ? fallback : config.directory;
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - sizeof("/handles.sock");
  if (path.empty() || path.front() != '/' || path.size() > kLongest) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("socket.directory \"", path, "\""),
                      absl::StrCat("is no absolute path of at most ", kLongest, " bytes"),
                      "give a short absolute path");
  }
  const absl::StatusOr<int> group = group_of(config.group);
  if (!group.ok()) return group.status();
  if (absl::Status status = make_directory(path, *group); !status.ok()) return status;

  const std::string lock_path = path + "/daemon.lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!lock) return failed(absl::StrCat("open ", lock_path), errno, "check owner and mode");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return held_by_another(lock.get(), path);
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(lock.get(), 0) != 0 ||
      ::pwrite(lock.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return failed(absl::StrCat("write ", lock_path), errno, "is the disk full?");
  }
  SocketDirectory directory(path, std::move(lock), config.mode, *group);
  for (const std::string& socket : {directory.handles_path(), directory.control_path()}) {
    if (absl::Status status = remove_stale(socket); !status.ok()) return status;
  }
  return directory;
}

absl::StatusOr<UniqueFd> SocketDirectory::listen(const std::string& socket_path) const {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return failed("make a socket", errno, "");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return failed(absl::StrCat("bind ", socket_path), errno, "check owner and mode of its folder");
  }
  // Nobody can connect before listen(): access is set first.
  if (absl::Status status = set_access(socket_path); !status.ok()) return status;
  if (::listen(socket.get(), kBacklog) != 0) {
    return failed(absl::StrCat("listen on ", socket_path), errno, "");
  }
  return socket;
}

absl::Status SocketDirectory::set_access(const std::string& socket_path) const {
  if (group_ >= 0 &&
      ::chown(socket_path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(group_)) != 0) {
    return failed(absl::StrCat("give ", socket_path, " to group ", group_), errno,
                  "run with that group or as root");
  }
  if (::chmod(socket_path.c_str(), mode_) != 0) {
    return failed(absl::StrCat("set mode ", absl::StrFormat("%o", mode_), " of ", socket_path),
                  errno, "");
  }
  return absl::OkStatus();
}

void SocketDirectory::remove_sockets() const {
  ::unlink(handles_path().c_str());
  ::unlink(control_path().c_str());
}

}  // namespace memdecay::server
