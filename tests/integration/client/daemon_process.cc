// A real memdecayd and engines' small tools; see daemon_process.h.
// Thread: the test's.
#include "tests/integration/client/daemon_process.h"

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

namespace memdecay::integration {
namespace {

// A datagram socket for "READY=1" (sd_notify).
int listen_for_ready(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ::unlink(path.c_str());
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
  return fd;
}

}  // namespace

DaemonProcess::DaemonProcess(std::vector<std::string> settings) : settings_(std::move(settings)) {
  char name[] = "/tmp/memdecay-client-XXXXXX";
  folder_ = ::mkdtemp(name);
  start();
}

DaemonProcess::~DaemonProcess() {
  kill_hard();
  std::filesystem::remove_all(folder_);
}

void DaemonProcess::start() {
  const std::string ready = folder_ + "/ready";
  const int fd = listen_for_ready(ready);
  std::vector<std::string> words = {MEMDECAYD,
                                    "--set",
                                    "device.pages=16",
                                    "--set",
                                    "host.pages=32",
                                    "--set",
                                    "metrics.listen=none",
                                    "--set",
                                    "socket.directory=" + folder_};
  for (const std::string& setting : settings_) {
    words.push_back("--set");
    words.push_back(setting);
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string notify = "NOTIFY_SOCKET=" + ready;
  std::vector<char*> environment = {const_cast<char*>(notify.c_str()), nullptr};
  const std::string log = folder_ + "/log";
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int failed =
      ::posix_spawn(&pid_, MEMDECAYD, &actions, nullptr, argv.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ASSERT_EQ(failed, 0) << std::strerror(failed);
  pollfd wait{fd, POLLIN, 0};
  const int there = ::poll(&wait, 1, 20000);
  ::close(fd);
  ASSERT_EQ(there, 1) << "memdecayd does not become ready; see " << log;
}

void DaemonProcess::kill_hard() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int DaemonProcess::stop() {
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

memdecay_options options_for(const DaemonProcess& daemon) {
  memdecay_options options = MEMDECAY_OPTIONS_INIT;
  options.socket_dir = daemon.folder().c_str();
  options.engine_name = "test";
  options.grants_ahead = MEMDECAY_NO_GRANTS;
  return options;
}

engine::Client connect(const memdecay_options& options) {
  engine::Client client = engine::Client::connect(options);
  EXPECT_TRUE(client) << memdecay_last_error()->message;
  return client;
}
engine::Client connect(const DaemonProcess& daemon) { return connect(options_for(daemon)); }

engine::Session open(const engine::Client& client, const char* name) {
  memdecay_open_options options = MEMDECAY_OPEN_INIT;
  options.name = name;
  engine::Session session = client.open(layout(), options);
  EXPECT_TRUE(session) << memdecay_last_error()->message;
  return session;
}

engine::Session open_lossy(const engine::Client& client, const char* name, uint32_t budget_pages) {
  memdecay_open_options options = MEMDECAY_OPEN_INIT;
  options.name = name;
  options.mode = MEMDECAY_LOSSY;
  options.budget_pages = budget_pages;
  engine::Session session = client.open(layout(), options);
  EXPECT_TRUE(session) << memdecay_last_error()->message;
  return session;
}

memdecay_code step(const engine::Session& session, uint64_t number) {
  engine::Step bracket(session);
  memdecay_step done = MEMDECAY_STEP_INIT;
  done.step = number;
  return bracket.end(done);
}

memdecay_event wait_for(const engine::Client& client, memdecay_event_kind kind) {
  memdecay_event event{};
  while (memdecay_next_event(client.get(), 10000, &event) == MEMDECAY_OK) {
    if (event.kind == kind) return event;
  }
  ADD_FAILURE() << "no event " << memdecay_event_name(kind);
  return {};
}

}  // namespace memdecay::integration
