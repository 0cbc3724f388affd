// See processes.h.
#include "tests/bench/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::bench {
namespace {

constexpr int kReadyMilliseconds = 30'000;

absl::Status broken(const std::string& asked, const std::string& there) {
  return make_error(ErrorCode::kUnavailable, asked, there, "look at its message above");
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

absl::StatusOr<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return broken("a pipe", std::strerror(errno));
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// The socket on which a supervised program says that it is ready (sd_notify).
absl::StatusOr<UniqueFd> listen_for_ready(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return broken(absl::StrCat("bind ", path), std::strerror(errno));
  }
  return fd;
}

}  // namespace

absl::StatusOr<TemporaryFolder> TemporaryFolder::create() {
  std::string name = (std::filesystem::temp_directory_path() / "memdecay-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return broken("a temporary folder", std::strerror(errno));
  }
  return TemporaryFolder(std::move(name));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, std::string())) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::start(
    std::vector<std::string> words, const std::vector<std::string>& environment) {
  absl::StatusOr<Pipe> input = make_pipe();
  if (!input.ok()) return input.status();
  absl::StatusOr<Pipe> output = make_pipe();
  if (!output.ok()) return output.status();
  std::vector<std::string> variables = environment;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input->read.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output->write.get(), STDOUT_FILENO);
  std::unique_ptr<ChildProcess> child(new ChildProcess());
  const int failed = ::posix_spawn(&child->pid_, words[0].c_str(), &actions, nullptr,
                                   pointers(words).data(), pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    child->pid_ = -1;
    return broken(absl::StrCat("start ", words[0]), std::strerror(failed));
  }
  child->input_ = std::move(input->write);
  child->output_.reset(::fdopen(output->read.release(), "r"));
  return child;
}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0) return;
  input_ = UniqueFd();
  ::kill(pid_, SIGTERM);
  wait();
}

int ChildProcess::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

absl::Status ChildProcess::write_line(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(input_.get(), text.data() + at, text.size() - at);
    if (wrote < 0 && errno != EINTR) return broken("write to a child", std::strerror(errno));
    if (wrote > 0) at += static_cast<size_t>(wrote);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ChildProcess::read_line() {
  char* line = nullptr;
  size_t capacity = 0;
  const ssize_t length = ::getline(&line, &capacity, output_.get());
  const std::unique_ptr<char, decltype(&std::free)> owner(line, &std::free);
  if (length <= 0) return broken("a line of a child", "it has ended");
  const bool whole = line[length - 1] == '\n';
  return std::string(line, static_cast<size_t>(whole ? length - 1 : length));
}

absl::StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::start(
    const std::string& programs, const std::vector<std::string>& settings) {
  absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::create();
  if (!folder.ok()) return folder.status();
  std::unique_ptr<DaemonProcess> daemon(new DaemonProcess(*std::move(folder)));
  const std::string ready = daemon->folder() + "/ready";
  const absl::StatusOr<UniqueFd> socket = listen_for_ready(ready);
  if (!socket.ok()) return socket.status();
  std::vector<std::string> words = {programs + "/memdecayd"};
  for (const std::string& setting :
       {std::string("socket.directory=") + daemon->folder(), std::string("metrics.listen=none"),
        std::string("log.level=warning")}) {
    words.insert(words.end(), {"--set", setting});
  }
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  absl::StatusOr<std::unique_ptr<ChildProcess>> process =
      ChildProcess::start(words, {"NOTIFY_SOCKET=" + ready});
  if (!process.ok()) return process.status();
  daemon->process_ = *std::move(process);
  pollfd wait{socket->get(), POLLIN, 0};
  if (::poll(&wait, 1, kReadyMilliseconds) != 1) {
    return broken("memdecayd", "it does not become ready");
  }
  return daemon;
}

}  // namespace memdecay::bench
