// ChildProcess: a program with pipes on its stdin and stdout. Dies with its owner; its stderr goes
// to a file. Thread: write_line() any, one at a time; read_line() one. Invariant: the process is
// reaped once. Not here: what the lines mean.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/unique_fd.h"

namespace memdecay::scenario {

class ChildProcess {
 public:
  struct Spec {
    std::vector<std::string> words;        // the program and its arguments
    std::vector<std::string> environment;  // "NAME=value", on top of ours
    std::string log_path;                  // stderr is appended there
    std::optional<uint32_t> uid;
    std::optional<uint32_t> gid;
  };
  static absl::StatusOr<std::unique_ptr<ChildProcess>> spawn(const Spec& spec);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  bool write_line(const std::string& line);
  // The next line without its end; nothing: the process has closed its stdout.
  std::optional<std::string> read_line();

  // Sends a signal; SIGSTOP returns when the process has stopped.
  void signal(int number);
  // Reaps it, waiting for its end. The wait status.
  int wait();
  bool running() const { return pid_ > 0; }

 private:
  ChildProcess(pid_t pid, UniqueFd in, UniqueFd out)
      : pid_(pid), stdin_(std::move(in)), stdout_(std::move(out)) {}

  pid_t pid_;
  UniqueFd stdin_;
  UniqueFd stdout_;
  std::string buffer_;
};

}  // namespace memdecay::scenario
