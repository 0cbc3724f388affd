// zlib reads plain files and gzip alike (see lines.h).
#include "client/ctl/replay/lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

constexpr size_t kBuffer = size_t{64} << 10;

absl::Status cannot_read(const std::string& path, const char* why) {
  return make_error(ErrorCode::kNotFound, absl::StrCat("trace ", path), why,
                    "name a file that can be read");
}

}  // namespace

void Lines::Close::operator()(gzFile_s* file) const { ::gzclose_r(file); }

Lines::Lines(std::string path, gzFile_s* file, uint64_t file_bytes)
    : path_(std::move(path)), file_(file), file_bytes_(file_bytes), buffer_(kBuffer) {}
Lines::~Lines() = default;
Lines::Lines(Lines&&) noexcept = default;

absl::StatusOr<Lines> Lines::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return cannot_read(path, std::strerror(errno));
  struct stat about {};
  if (::fstat(fd, &about) != 0 || S_ISDIR(about.st_mode)) {
    ::close(fd);
    return cannot_read(path, "it is a folder");
  }
  gzFile_s* file = ::gzdopen(fd, "rb");
  if (file == nullptr) {
    ::close(fd);
    return cannot_read(path, "there is no memory for it");
  }
  ::gzbuffer(file, kBuffer);
  return Lines(path, file, S_ISREG(about.st_mode) ? static_cast<uint64_t>(about.st_size) : 0);
}

absl::Status Lines::fill() {
  const int got = ::gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  const char* why = ::gzerror(file_.get(), &code);
  // At the end of a file that stops inside a gzip stream gzread gives what there was, then 0.
  if (got < 0 || code == Z_BUF_ERROR || code == Z_DATA_ERROR) {
    return make_error(ErrorCode::kDataLoss,
                      absl::StrCat("trace ", path_, ", after line ", line_.number),
                      code == Z_BUF_ERROR ? "the gzip stream ends early: the file is truncated"
                                          : absl::StrCat("it cannot be unpacked: ", why),
                      "fetch the file again");
  }
  at_ = 0;
  end_ = static_cast<size_t>(got);
  at_end_ = got == 0;
  return absl::OkStatus();
}

absl::StatusOr<const Lines::Line*> Lines::next() {
  longer_.clear();
  while (true) {
    if (at_ == end_ && !at_end_) {
      if (absl::Status read = fill(); !read.ok()) return read;
    }
    if (at_end_ && longer_.empty()) return nullptr;
    const std::string_view rest(buffer_.data() + at_, end_ - at_);
    const size_t newline = rest.find('\n');
    const std::string_view part = rest.substr(0, newline);
    if (longer_.size() + part.size() > kLongestLine) {
      return make_error(ErrorCode::kInvalidArgument,
                        absl::StrCat("trace ", path_, ", line ", line_.number + 1),
                        absl::StrCat("it is longer than ", kLongestLine >> 20, " MiB"),
                        "give a trace with one JSON object a line");
    }
    if (newline == std::string_view::npos && !at_end_) {
      longer_.append(part);
      at_ = end_;
      continue;
    }
    const Ended ended = at_end_ ? Ended::kByEndOfFile : Ended::kByNewline;
    at_ += at_end_ ? 0 : part.size() + 1;
    if (!longer_.empty()) longer_.append(part);
    line_ = {longer_.empty() ? part : std::string_view(longer_), line_.number + 1, ended};
    return &line_;
  }
}

uint64_t Lines::read_bytes() const {
  const auto at = ::gzoffset(file_.get());
  return at < 0 ? 0 : std::min(static_cast<uint64_t>(at), std::max<uint64_t>(file_bytes_, 1));
}

}  // namespace memdecay::ctl
