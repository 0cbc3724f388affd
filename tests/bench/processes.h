// Child processes and temporary folders of the benchmark: real programs, talked to by lines.
// Thread: one. Invariants: a child ends with its object; a folder goes with everything in it.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/unique_fd.h"

namespace memdecay::bench {

class TemporaryFolder {
 public:
  static absl::StatusOr<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

class ChildProcess {
 public:
  // words[0] is the program's path; "NAME=value" words in `environment` are added to this
  // process's.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> start(
      std::vector<std::string> words, const std::vector<std::string>& environment = {});
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  // Closes its input, sends SIGTERM, waits.
  ~ChildProcess();

  absl::Status write_line(const std::string& line);
  // The next line of its standard output, without the line end. unavailable: it has ended.
  absl::StatusOr<std::string> read_line();
  // For a program that ends by itself: its exit code.
  int wait();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  ChildProcess() = default;

  pid_t pid_ = -1;
  UniqueFd input_;
  std::unique_ptr<std::FILE, CloseFile> output_;
};

// memdecayd with its sockets in a folder of its own, no metrics endpoint.
class DaemonProcess {
 public:
  // Returns when it serves. Settings are "key=value".
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> start(
      const std::string& programs, const std::vector<std::string>& settings);
  const std::string& folder() const { return folder_.path(); }

 private:
  explicit DaemonProcess(TemporaryFolder folder) : folder_(std::move(folder)) {}
  TemporaryFolder folder_;
  std::unique_ptr<ChildProcess> process_;  // goes before its folder
};

}  // namespace memdecay::bench
