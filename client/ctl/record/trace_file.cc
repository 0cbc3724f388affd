// See trace_file.h.
#include "client/ctl/record/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

constexpr size_t kPiece = size_t{1} << 20;  // of one gzwrite

}  // namespace

void TraceFile::Close::operator()(gzFile_s* file) const { ::gzclose(file); }

TraceFile::TraceFile(std::string path, UniqueFd fd, gzFile_s* packed)
    : path_(std::move(path)), fd_(std::move(fd)), packed_(packed) {}
TraceFile::~TraceFile() = default;
TraceFile::TraceFile(TraceFile&&) noexcept = default;

absl::StatusOr<TraceFile> TraceFile::create(const std::string& path) {
  if (path == "-") return TraceFile("standard output", UniqueFd(::dup(STDOUT_FILENO)), nullptr);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) {
    const bool there = errno == EEXIST;
    return make_error(
        ErrorCode::kInvalidArgument, absl::StrCat("trace ", path),
        there ? "there is such a file already" : std::strerror(errno),
        there ? "remove it, or name another" : "name a file in a folder that is there");
  }
  if (!absl::EndsWith(path, ".gz")) return TraceFile(path, std::move(fd), nullptr);
  gzFile_s* const packed = ::gzdopen(fd.get(), "wb6");
  if (packed == nullptr) {
    return make_error(ErrorCode::kResourceExhausted, absl::StrCat("trace ", path),
                      "there is no memory to pack it", "leave .gz away");
  }
  static_cast<void>(fd.release());  // gzclose closes it
  return TraceFile(path, UniqueFd(), packed);
}

absl::Status TraceFile::failed() const {
  return make_error(ErrorCode::kResourceExhausted, absl::StrCat("write ", path_),
                    std::strerror(errno), "make room, or record less with --max-bytes");
}

absl::Status TraceFile::write(std::string_view lines) {
  while (!lines.empty()) {
    const size_t size = std::min(lines.size(), kPiece);
    const int64_t wrote =
        packed_ != nullptr ? ::gzwrite(packed_.get(), lines.data(), static_cast<unsigned int>(size))
                           : ::write(fd_.get(), lines.data(), size);
    if (wrote <= 0) {
      if (errno == EINTR) continue;
      return failed();
    }
    lines.remove_prefix(static_cast<size_t>(wrote));
  }
  return absl::OkStatus();
}

absl::Status TraceFile::close() {
  if (packed_ != nullptr) {
    return ::gzclose(packed_.release()) == Z_OK ? absl::OkStatus() : failed();
  }
  fd_ = UniqueFd();
  return absl::OkStatus();
}

}  // namespace memdecay::ctl
