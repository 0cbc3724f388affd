// The file that a recording is written to: plain, or gzip if its name ends in .gz, or standard
// output ("-"). Only whole lines are handed to it, and close() ends a gzip stream, so whatever ends
// a recording leaves a file that can be read.
// Thread: one. Not here: reading (client/ctl/replay/lines.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/contract/unique_fd.h"

struct gzFile_s;

namespace memdecay::ctl {

class TraceFile {
 public:
  // invalid_argument: the file is there already, or cannot be made.
  static absl::StatusOr<TraceFile> create(const std::string& path);
  ~TraceFile();
  TraceFile(TraceFile&&) noexcept;
  TraceFile& operator=(TraceFile&&) = delete;

  // resource_exhausted: the file cannot grow; what was written before is whole.
  absl::Status write(std::string_view lines);
  // Everything is on its way to the disk; nothing is written any more.
  absl::Status close();

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  TraceFile(std::string path, UniqueFd fd, gzFile_s* packed);
  absl::Status failed() const;

  std::string path_;
  UniqueFd fd_;                              // plain
  std::unique_ptr<gzFile_s, Close> packed_;  // gzip
};

}  // namespace memdecay::ctl
