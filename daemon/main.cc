// memdecayd: flags, configuration, signals. It starts the daemon (server/daemon.h), waits for a
// signal and stops it.
// Thread: main; signals are blocked everywhere and read here. SIGTERM and SIGINT stop, SIGHUP reads
// the configuration again. Exit codes: 0 stopped in good order, 1 could not serve, 2 bad
// configuration or flags.
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/server/config.h"
#include "daemon/server/daemon.h"
#include "daemon/server/sd_notify.h"
#include "proto/contract/error.h"

namespace {

using memdecay::server::Config;

struct Flags {
  std::string config_path;
  std::vector<std::string> settings;
  bool check = false;
  bool print = false;
  bool example = false;
};

std::string environment(const char* name) {
  const char* const value = ::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

absl::StatusOr<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return memdecay::make_error(memdecay::ErrorCode::kNotFound, "configuration " + path,
                                "it cannot be read", "check the path and its permissions");
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::StatusOr<Config> load(const Flags& flags) {
  absl::StatusOr<std::string> text = std::string();
  if (!flags.config_path.empty()) text = read_file(flags.config_path);
  if (!text.ok()) return text.status();
  absl::StatusOr<Config> config = memdecay::server::parse_yaml(*text, read_file);
  if (!config.ok() || flags.settings.empty()) return config;
  for (const std::string& word : flags.settings) {
    absl::Status status = memdecay::server::apply_setting_word(*config, word);
    if (!status.ok()) return status;
  }
  return memdecay::server::resolve(*std::move(config));
}

int complain(const absl::Status& status, int exit_code) {
  std::cerr << "memdecayd: " << std::string(status.message()) << std::endl;
  return exit_code;
}

// Every slab, engine and socket is a descriptor: as many as the machine allows.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const Flags& flags, Config config) {
  raise_descriptor_limit();
  // Before the first thread, so that all inherit it.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  const memdecay::base::Log log = memdecay::base::Log::to_stderr(
      memdecay::base::log_level_from_name(config.log.level)
          .value_or(memdecay::base::LogLevel::kInfo),
      config.log.json ? memdecay::base::LogForm::kJson : memdecay::base::LogForm::kText);
  for (const std::string& warning : config.warnings) log.warning(warning);
  const std::string runtime = environment("XDG_RUNTIME_DIR");
  const std::string supervisor = environment("NOTIFY_SOCKET");
  auto daemon = memdecay::server::Daemon::start(
      std::move(config), (runtime.empty() ? std::string("/run") : runtime) + "/memdecay", log);
  if (!daemon.ok()) return complain(daemon.status(), 1);
  memdecay::server::sd_notify(supervisor, "READY=1");
  while (true) {
    int number = 0;
    if (::sigwait(&signals, &number) != 0) continue;
    if (number != SIGHUP) break;
    absl::StatusOr<Config> fresh = load(flags);
    absl::Status outcome = fresh.status();
    if (outcome.ok()) outcome = (*daemon)->reload(*fresh);
    if (outcome.ok()) {
      log.info("configuration read again");
    } else {
      log.error("configuration not changed", {{"why", std::string(outcome.message())}});
    }
  }
  memdecay::server::sd_notify(supervisor, "STOPPING=1");
  (*daemon)->stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Owns KV cache pages and decides which of them stay where.\n"
      "Example: memdecayd --config /etc/memdecay/memdecayd.yaml\n"
      "         memdecayd --set device.pages=256 --set socket.directory=/tmp/memdecay");
  Flags flags;
  app.add_option("--config", flags.config_path, "configuration file (YAML)");
  app.add_option("--set", flags.settings, "KEY=VALUE on top of the file; may be repeated")
      ->take_all();
  app.add_flag("--check-config", flags.check, "read the configuration, say what is wrong, exit");
  app.add_flag("--print-config", flags.print, "print the configuration in effect, exit");
  app.add_flag("--print-example", flags.example, "print an annotated example, exit");
  app.set_version_flag("--version", "memdecayd " MEMDECAY_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  if (flags.example) {
    std::cout << memdecay::server::example_yaml();
    return 0;
  }
  absl::StatusOr<Config> config = load(flags);
  if (!config.ok()) return complain(config.status(), 2);
  if (flags.print) std::cout << memdecay::server::print_yaml(*config);
  if (flags.check) {
    for (const std::string& warning : config->warnings) {
      std::cerr << "memdecayd: warning: " << warning << std::endl;
    }
    std::cout << "configuration is good" << std::endl;
  }
  if (flags.check || flags.print) return 0;
  return run(flags, *std::move(config));
}
