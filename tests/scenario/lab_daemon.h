// LabDaemon: a memdecayd-lab in a folder of its own under /tmp. Start, stop, kill, start again.
// Thread: one. The folder goes with the object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/server/config.h"
#include "tests/scenario/child_process.h"

namespace memdecay::scenario {

// The group of the sockets where tenants are several users.
inline constexpr uint32_t kTenantGid = 60'000;

class LabDaemon {
 public:
  // Sockets, log and metrics are set here. Waits until it is ready to serve.
  static absl::StatusOr<std::unique_ptr<LabDaemon>> start(server::Config config);
  ~LabDaemon();

  const std::string& folder() const { return folder_; }
  bool running() const { return process_ != nullptr && process_->running(); }
  absl::Status start_again();
  void kill();
  // SIGTERM and its end; internal: it did not end in good order.
  absl::Status stop();

 private:
  std::string config_path() const { return folder_ + "/config.yaml"; }
  explicit LabDaemon(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  std::unique_ptr<ChildProcess> process_;
};

// Where this program's sisters are: the folder of the running executable.
std::string program_path(const std::string& name);

}  // namespace memdecay::scenario
