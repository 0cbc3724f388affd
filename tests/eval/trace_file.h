// A trace file being written: gzip, complete or not there.
//
// Why: recordings are resumed by skipping what is there, so a file under its name must be whole.
// Thread: one.
// Invariant: the file gets its name in finish(); until then it has another, and goes when dropped.
// Not here: the lines (daemon/policy/trace/event.h).
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/policy/trace/event.h"

struct gzFile_s;

namespace memdecay::eval {

class TraceFile {
 public:
  static absl::StatusOr<TraceFile> create(const std::string& path, const trace::Header& header);
  TraceFile(TraceFile&&) noexcept = default;
  ~TraceFile();

  void write(const trace::Event& event);
  // data_loss: the disk took less than was written.
  absl::Status finish();

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  TraceFile(std::string path, gzFile_s* file) : path_(std::move(path)), file_(file) {}
  std::string unfinished() const { return path_ + ".part"; }
  void line(const std::string& text);

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::string line_;
  enum class Disk : uint8_t { kFine, kFailed } disk_ = Disk::kFine;
};

// Replaces the file at once: it has the old content or the new one.
absl::Status write_whole_file(const std::string& path, const std::string& content);

}  // namespace memdecay::eval
