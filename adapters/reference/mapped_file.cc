// The implementation of mapped_file.h; POSIX calls only, no thread of its own.
#include "adapters/reference/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace memdecay::reference {

absl::StatusOr<MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const std::string words = absl::StrCat("cannot open ", path, ": ", std::strerror(errno));
    return make_error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument, words);
  }
  struct stat info {};
  const bool plain = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
  void* address = MAP_FAILED;
  const size_t size = plain ? static_cast<size_t>(info.st_size) : 0;
  if (plain) address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (!plain) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat(path, " is empty or not a plain file"));
  }
  if (address == MAP_FAILED) {
    return make_error(ErrorCode::kResourceExhausted,
                      absl::StrCat("cannot map ", path, " (", size, " bytes)"));
  }
  return MappedFile(static_cast<const std::byte*>(address), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

MappedFile::~MappedFile() { unmap(); }

void MappedFile::unmap() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace memdecay::reference
