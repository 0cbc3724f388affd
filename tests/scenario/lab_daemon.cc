// See lab_daemon.h.
#include "tests/scenario/lab_daemon.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/scenario/text_file.h"

namespace memdecay::scenario {
namespace {

constexpr int kReadyMilliseconds = 20'000;

// A datagram socket for "READY=1" (sd_notify).
UniqueFd listen_for_ready(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ::unlink(path.c_str());
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
  return fd;
}

}  // namespace

std::string program_path(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return self.parent_path() / name;
}

absl::StatusOr<std::unique_ptr<LabDaemon>> LabDaemon::start(server::Config config) {
  char name[] = "/tmp/memdecay-scenario-XXXXXX";
  if (::mkdtemp(name) == nullptr) {
    return make_error(ErrorCode::kInternal, "a folder in /tmp", std::strerror(errno));
  }
  std::unique_ptr<LabDaemon> daemon(new LabDaemon(name));
  config.socket.directory = name;
  config.metrics_listen = "none";
  config.log.level = "warning";
  if (config.identities.size() > 1) {  // tenants are other users
    config.socket.group = std::to_string(kTenantGid);
    ::chmod(name, 0755);
  }
  std::ofstream(daemon->config_path()) << server::print_yaml(config);
  if (absl::Status started = daemon->start_again(); !started.ok()) return started;
  return daemon;
}

LabDaemon::~LabDaemon() {
  process_.reset();
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

absl::Status LabDaemon::start_again() {
  const std::string ready = folder_ + "/ready";
  const UniqueFd notice = listen_for_ready(ready);
  const ChildProcess::Spec spec{.words = {program_path("memdecayd-lab"), "--config", config_path()},
                                .environment = {absl::StrCat("NOTIFY_SOCKET=", ready)},
                                .log_path = folder_ + "/log"};
  absl::StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::spawn(spec);
  if (!process.ok()) return process.status();
  process_ = *std::move(process);
  pollfd wait{notice.get(), POLLIN, 0};
  if (::poll(&wait, 1, kReadyMilliseconds) == 1) return absl::OkStatus();
  const absl::StatusOr<std::string> log = read_text_file(folder_ + "/log");
  return make_error(ErrorCode::kUnavailable, "memdecayd-lab", "it does not become ready",
                    log.ok() ? *log : std::string());
}

void LabDaemon::kill() {
  if (process_ == nullptr) return;
  process_->signal(SIGKILL);
  process_->wait();
}

absl::Status LabDaemon::stop() {
  if (!running()) return make_error(ErrorCode::kUnavailable, "stop", "no daemon runs");
  process_->signal(SIGTERM);
  const int status = process_->wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return make_error(ErrorCode::kInternal, "stop", absl::StrCat("wait status ", status));
}

}  // namespace memdecay::scenario
