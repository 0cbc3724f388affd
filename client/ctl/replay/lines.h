// A text file line by line, plain or gzip as its first bytes say, whatever its name. Holds one
// buffer and one line, never the file.
// Thread: one. Not here: what stands in a line (trace.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

struct gzFile_s;

namespace memdecay::ctl {

// Longer lines are refused: a request of a million tokens has one of about a megabyte.
inline constexpr size_t kLongestLine = size_t{64} << 20;

class Lines {
 public:
  enum class Ended : uint8_t { kByNewline, kByEndOfFile };
  struct Line {
    std::string_view text;  // without its newline; valid until the next call
    uint64_t number = 0;    // from 1
    Ended ended = Ended::kByNewline;
  };

  // not_found: there is no such file, or it cannot be read.
  static absl::StatusOr<Lines> open(const std::string& path);
  ~Lines();
  Lines(Lines&&) noexcept;
  Lines& operator=(Lines&&) = delete;

  // The next line; null at the end of the file. data_loss: the gzip stream is damaged or ends
  // early. invalid_argument: the line is too long.
  absl::StatusOr<const Line*> next();

  // How far it has been read, of file_bytes(); both before decompression. 0: no regular file.
  uint64_t read_bytes() const;
  uint64_t file_bytes() const { return file_bytes_; }
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  Lines(std::string path, gzFile_s* file, uint64_t file_bytes);
  absl::Status fill();

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  uint64_t file_bytes_ = 0;
  std::vector<char> buffer_;
  size_t at_ = 0;   // first byte of the buffer that was not given out
  size_t end_ = 0;  // behind the last one
  bool at_end_ = false;
  std::string longer_;  // a line that did not fit what was left of the buffer
  Line line_;
};

}  // namespace memdecay::ctl
