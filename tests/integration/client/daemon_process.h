// A real memdecayd in a folder of its own, and engines' small tools: what every test of this folder
// starts with.
// Thread: the test's. Not here: any rule.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "client/memdecay.h"
#include "client/memdecay.hpp"
#include "tests/integration/client/engine_tools.h"

namespace memdecay::integration {

class DaemonProcess {
 public:
  // Settings are "key=value"; device.pages=16 and host.pages=32 unless they say otherwise.
  explicit DaemonProcess(std::vector<std::string> settings);
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;
  ~DaemonProcess();

  // Starts it and returns when it serves.
  void start();
  void kill_hard();
  // SIGTERM; its exit code.
  int stop();
  const std::string& folder() const { return folder_; }

 private:
  std::vector<std::string> settings_;
  std::string folder_;
  pid_t pid_ = -1;
};

memdecay_options options_for(const DaemonProcess& daemon);
engine::Client connect(const DaemonProcess& daemon);
engine::Client connect(const memdecay_options& options);
engine::Session open(const engine::Client& client, const char* name);
engine::Session open_lossy(const engine::Client& client, const char* name, uint32_t budget_pages);

// One step without an observation.
memdecay_code step(const engine::Session& session, uint64_t number);
// The next event of this kind, whatever comes before it; kind 0 when none comes within a few
// seconds.
memdecay_event wait_for(const engine::Client& client, memdecay_event_kind kind);

}  // namespace memdecay::integration
