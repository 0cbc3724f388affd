// zlib's gzip files and renaming; see trace_file.h.
#include "tests/eval/trace_file.h"

#include <zlib.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::eval {
namespace {

absl::Status cannot_write(const std::string& path) {
  return make_error(ErrorCode::kDataLoss, absl::StrCat("write ", path), {},
                    "look at the folder's permissions and at the disk's free space");
}

}  // namespace

void TraceFile::Close::operator()(gzFile_s* file) const { ::gzclose(file); }

absl::StatusOr<TraceFile> TraceFile::create(const std::string& path, const trace::Header& header) {
  gzFile_s* file = ::gzopen((path + ".part").c_str(), "wb6");
  if (file == nullptr) return cannot_write(path);
  TraceFile out(path, file);
  out.line(trace::to_line(header));
  return out;
}

TraceFile::~TraceFile() {
  if (file_ == nullptr) return;
  file_.reset();
  std::remove(unfinished().c_str());
}

void TraceFile::line(const std::string& text) {
  line_ = text;
  line_ += '\n';
  const auto size = static_cast<unsigned>(line_.size());
  if (::gzwrite(file_.get(), line_.data(), size) != static_cast<int>(size)) disk_ = Disk::kFailed;
}

void TraceFile::write(const trace::Event& event) { line(trace::to_line(event)); }

absl::Status TraceFile::finish() {
  const int closed = ::gzclose(file_.release());
  if (closed != Z_OK || disk_ == Disk::kFailed ||
      std::rename(unfinished().c_str(), path_.c_str()) != 0) {
    std::remove(unfinished().c_str());
    return cannot_write(path_);
  }
  return absl::OkStatus();
}

absl::Status write_whole_file(const std::string& path, const std::string& content) {
  const std::string unfinished = path + ".part";
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (!file || std::rename(unfinished.c_str(), path.c_str()) != 0) {
    std::remove(unfinished.c_str());
    return cannot_write(path);
  }
  return absl::OkStatus();
}

}  // namespace memdecay::eval
