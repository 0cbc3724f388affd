// EngineProcess: a memdecay-scenario-engine as the runner sees it: requests out, answers in by
// their id, whatever order they come in; signals. Thread: request() and friends on the runner's;
// answers arrive on one of its own. Invariants: every request has one answer; when the process
// ends, what is open ends `unavailable`.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "proto/contract/clock.h"
#include "tests/scenario/child_process.h"
#include "tests/scenario/wire_words.h"

namespace memdecay::scenario {

class EngineProcess {
 public:
  // Waits for its hello: the status of its attach.
  static absl::StatusOr<std::unique_ptr<EngineProcess>> start(const ChildProcess::Spec& spec);
  ~EngineProcess();

  uint64_t request(const std::string& line);
  std::optional<WireWords> answer(uint64_t request);
  // There is one to take.
  bool has_answer(uint64_t request);
  std::optional<WireWords> wait(uint64_t request, Duration patience);
  // request and wait.
  absl::StatusOr<WireWords> ask(const std::string& line, Duration patience);

  ChildProcess& process() { return *process_; }
  // What the daemon called it when it attached.
  uint64_t engine_id() const { return engine_id_; }

 private:
  explicit EngineProcess(std::unique_ptr<ChildProcess> process);
  void read_answers();

  std::unique_ptr<ChildProcess> process_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<uint64_t, WireWords> answers_;
  uint64_t last_request_ = 0;
  uint64_t engine_id_ = 0;
  bool ended_ = false;
  std::thread reader_;
};

}  // namespace memdecay::scenario
