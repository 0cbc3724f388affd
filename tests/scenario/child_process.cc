// See child_process.h.
#include "tests/scenario/child_process.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "proto/contract/error.h"

namespace memdecay::scenario {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

absl::StatusOr<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return make_error(ErrorCode::kInternal, "a pipe", std::strerror(errno));
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// In the child, between fork and exec: only what is safe there.
[[noreturn]] void become(const ChildProcess::Spec& spec, char* const* argv,
                         char* const* environment, int in, int out, int log, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_DFL);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(log, 2);
  if (spec.gid && (::setgroups(0, nullptr) != 0 || ::setgid(*spec.gid) != 0)) ::_exit(126);
  if (spec.uid && ::setuid(*spec.uid) != 0) ::_exit(126);
  ::execve(argv[0], argv, environment);
  ::_exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::spawn(const Spec& spec) {
  absl::StatusOr<Pipe> in = make_pipe();
  absl::StatusOr<Pipe> out = make_pipe();
  if (!in.ok()) return in.status();
  if (!out.ok()) return out.status();
  const UniqueFd log(
      ::open(spec.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  std::vector<char*> argv;
  for (const std::string& word : spec.words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  for (const std::string& entry : spec.environment) {
    environment.push_back(const_cast<char*>(entry.c_str()));
  }
  environment.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return make_error(ErrorCode::kInternal, "a process", std::strerror(errno));
  if (pid == 0) {
    become(spec, argv.data(), environment.data(), in->read.get(), out->write.get(), log.get(),
           parent);
  }
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(pid, std::move(in->write), std::move(out->read)));
}

ChildProcess::~ChildProcess() {
  if (!running()) return;
  ::kill(pid_, SIGKILL);
  wait();
}

bool ChildProcess::write_line(const std::string& line) {
  const std::string whole = line + "\n";
  size_t sent = 0;
  while (sent < whole.size()) {
    const ssize_t count = ::write(stdin_.get(), whole.data() + sent, whole.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

std::optional<std::string> ChildProcess::read_line() {
  while (true) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    char block[65536];
    const ssize_t count = ::read(stdout_.get(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    buffer_.append(block, static_cast<size_t>(count));
  }
}

void ChildProcess::signal(int number) {
  if (!running()) return;
  ::kill(pid_, number);
  if (number == SIGSTOP) {
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
    if (!WIFSTOPPED(status)) pid_ = -1;  // it had ended before
  }
}

int ChildProcess::wait() {
  if (!running()) return 0;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

}  // namespace memdecay::scenario
