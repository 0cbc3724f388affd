// See shadow_file.h.
#include "daemon/tiers/shadow_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "proto/contract/error.h"

namespace memdecay::tiers {
namespace {

absl::Status failed(std::string asked) {
  return make_error(ErrorCode::kResourceExhausted, std::move(asked), std::strerror(errno));
}

void unmap(std::byte* address, uint64_t bytes) { ::munmap(address, bytes); }

}  // namespace

absl::StatusOr<ShadowFile> ShadowFile::create(uint32_t records) {
  if (records == 0 || records > kMaxShadowRecords) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a shadow table of " + std::to_string(records) + " records");
  }
  const size_t bytes = shadow_table_bytes(records);
  UniqueFd file(::memfd_create("memdecay-shadow", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ::fchmod(file.get(), 0600) != 0 ||
      ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return failed("create a shadow table");
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return failed("map a shadow table");
  cuda::Mapping mapping(static_cast<std::byte*>(memory), bytes, cuda::Access::kReadWrite,
                        cuda::Mapping::Reach::kCpu, unmap);
  ::madvise(memory, bytes, MADV_DONTFORK);
  absl::StatusOr<ShadowWriter> writer = ShadowWriter::format(mapping.host_bytes(), records);
  if (!writer.ok()) return writer.status();
  return ShadowFile(std::move(file), std::move(mapping), *writer);
}

absl::StatusOr<UniqueFd> ShadowFile::share() const {
  // Opened again: a duplicate would share the writable open file.
  const std::string path = "/proc/self/fd/" + std::to_string(file_.get());
  UniqueFd reopened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!reopened) return failed("share a shadow table");
  return reopened;
}

}  // namespace memdecay::tiers
