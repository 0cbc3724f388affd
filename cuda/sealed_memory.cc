// memfd, seals and mmap (see sealed_memory.h).
#include "cuda/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace memdecay::cuda {
namespace {

// F_SEAL_SEAL keeps a peer from sealing against our own writes.
constexpr unsigned kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

void unmap(void*, std::byte* address, uint64_t bytes) { ::munmap(address, bytes); }

}  // namespace

Fd create_sealed_memory(const char* name, uint64_t bytes, Prefault prefault) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Mode 0600: another user who was given a read-only descriptor cannot open it again for writing.
  if (!fd || ::fchmod(fd.get(), 0600) != 0) return {};
  const auto length = static_cast<off_t>(bytes);
  if (::ftruncate(fd.get(), length) != 0) return {};
  // Want of memory is an error here, not a signal later.
  if (prefault == Prefault::kYes && ::fallocate(fd.get(), 0, 0, length) != 0) return {};
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return {};
  return fd;
}

bool is_sealed_memory(int fd, uint64_t bytes) {
  struct stat info {};
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (static_cast<unsigned>(seals) & kSeals) == kSeals &&
         ::fstat(fd, &info) == 0 && static_cast<uint64_t>(info.st_size) == bytes;
}

std::optional<Mapping> map_sealed_memory(int fd, uint64_t bytes, Access access, Prefault prefault) {
  const int protection = access == Access::kReadWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  const int flags = prefault == Prefault::kYes ? MAP_SHARED | MAP_POPULATE : MAP_SHARED;
  void* address = ::mmap(nullptr, bytes, protection, flags, fd, 0);
  if (address == MAP_FAILED) return std::nullopt;
  // A forked child must neither keep the memory alive nor write into it.
  ::madvise(address, bytes, MADV_DONTFORK);
  return Mapping(static_cast<std::byte*>(address), bytes, access, Mapping::Reach::kCpu, unmap);
}

Fd reopen_read_only(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace memdecay::cuda
