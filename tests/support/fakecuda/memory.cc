// Virtual memory management: allocations are memfds, addresses are reserved and untouchable.
// How it knows that a descriptor elsewhere keeps memory alive: an exported descriptor is a new open
// file with a read lock of its own (F_OFD_SETLK), which every duplicate in every process shares;
// the owner asks for the write lock. So the kernel counts, also for processes that were killed.
#include <cudaTypedefs.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/support/fakecuda/fake.h"

namespace fakecuda {
namespace {

constexpr uint64_t kTrailerBytes = 4096;
constexpr char kMagic[8] = {'F', 'A', 'K', 'E', 'S', 'L', 'A', 'B'};

struct Trailer {
  char magic[8];
  uint64_t bytes;
  int64_t device;
};

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

// A new open file, so that its lock is its own.
int reopen(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return ::open(path.c_str(), O_RDWR);
}

bool others_hold(int fd) {
  struct flock lock = whole_file(F_WRLCK);
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// Memory whose last foreign holder has gone meanwhile. With the mutex held.
void collect() {
  State& s = state();
  for (size_t i = 0; i < s.limbo.size();) {
    if (others_hold(s.limbo[i].fd)) {
      ++i;
      continue;
    }
    ::close(s.limbo[i].fd);
    s.used_bytes -= s.limbo[i].bytes;
    s.limbo[i] = s.limbo.back();
    s.limbo.pop_back();
  }
}

std::byte* map_alias(int fd, uint64_t bytes) {
  void* alias = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return alias == MAP_FAILED ? nullptr : static_cast<std::byte*>(alias);
}

bool valid(const CUmemAllocationProp* prop) {
  return prop != nullptr && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && prop->location.id >= 0 &&
         prop->location.id < state().options.devices;
}

CUresult get_granularity(size_t* granularity, const CUmemAllocationProp* prop,
                         CUmemAllocationGranularity_flags) {
  Call call("cuMemGetAllocationGranularity", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (!valid(prop)) return CUDA_ERROR_INVALID_VALUE;
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                unsigned long long flags) {
  Call call("cuMemCreate", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (size == 0 || size % kGranularity != 0 || !valid(prop) || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  State& s = state();
  collect();
  const uint64_t taken = s.used_bytes + s.options.taken_bytes;
  if (taken > s.options.vram_bytes || size > s.options.vram_bytes - taken) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto made = std::make_shared<Allocation>();
  made->fd = ::memfd_create("fakecuda", MFD_CLOEXEC);
  made->bytes = size;
  made->device = prop->location.id;
  const auto length = static_cast<off_t>(size + kTrailerBytes);
  if (made->fd < 0 || ::ftruncate(made->fd, length) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  Trailer trailer{.magic = {}, .bytes = size, .device = made->device};
  std::memcpy(trailer.magic, kMagic, sizeof kMagic);
  (void)!::pwrite(made->fd, &trailer, sizeof trailer, static_cast<off_t>(size));
  made->alias = map_alias(made->fd, size);
  if (made->alias == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(made->alias, kPoison, size);
  made->owned = true;
  s.used_bytes += size;
  *handle = ++s.next_handle;
  s.handles[*handle] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult release(CUmemGenericAllocationHandle handle) {
  Call call("cuMemRelease", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  return state().handles.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult export_handle(void* out, CUmemGenericAllocationHandle handle,
                       CUmemAllocationHandleType type, unsigned long long flags) {
  Call call("cuMemExportToShareableHandle", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  const auto found = state().handles.find(handle);
  if (found == state().handles.end() || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int fd = reopen(found->second->fd);
  struct flock lock = whole_file(F_RDLCK);
  if (fd < 0 || ::fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    if (fd >= 0) ::close(fd);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  *static_cast<int*>(out) = fd;
  return CUDA_SUCCESS;
}

CUresult import_handle(CUmemGenericAllocationHandle* handle, void* os_handle,
                       CUmemAllocationHandleType type) {
  Call call("cuMemImportFromShareableHandle", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  const int given = static_cast<int>(reinterpret_cast<intptr_t>(os_handle));
  struct stat info {};
  Trailer trailer{};
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || ::fstat(given, &info) != 0 ||
      static_cast<uint64_t>(info.st_size) <= kTrailerBytes ||
      ::pread(given, &trailer, sizeof trailer, info.st_size - static_cast<off_t>(kTrailerBytes)) !=
          sizeof trailer ||
      std::memcmp(trailer.magic, kMagic, sizeof kMagic) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto taken = std::make_shared<Allocation>();
  taken->fd = ::fcntl(given, F_DUPFD_CLOEXEC, 0);
  taken->bytes = trailer.bytes;
  taken->device = static_cast<int>(trailer.device);
  taken->alias = taken->fd < 0 ? nullptr : map_alias(taken->fd, taken->bytes);
  if (taken->alias == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  *handle = ++state().next_handle;
  state().handles[*handle] = std::move(taken);
  return CUDA_SUCCESS;
}

CUresult get_properties(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  Call call("cuMemGetAllocationPropertiesFromHandle", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  const auto found = state().handles.find(handle);
  if (found == state().handles.end()) return CUDA_ERROR_INVALID_VALUE;
  *prop = {};
  prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop->location.id = found->second->device;
  return CUDA_SUCCESS;
}

CUresult reserve(CUdeviceptr* address, size_t size, size_t alignment, CUdeviceptr hint,
                 unsigned long long flags) {
  Call call("cuMemAddressReserve", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (size == 0 || size % kGranularity != 0 || hint != 0 || flags != 0 ||
      (alignment != 0 && alignment > kGranularity)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t room = size + kGranularity;
  void* at = ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto start = reinterpret_cast<CUdeviceptr>(at);
  const CUdeviceptr aligned = (start + kGranularity - 1) / kGranularity * kGranularity;
  if (aligned > start) ::munmap(at, aligned - start);
  const uint64_t behind = start + room - (aligned + size);
  if (behind > 0) ::munmap(reinterpret_cast<void*>(aligned + size), behind);
  state().reservations[aligned] = size;
  *address = aligned;
  return CUDA_SUCCESS;
}

bool touches_mapping(CUdeviceptr address, uint64_t bytes) {
  return std::any_of(state().mappings.begin(), state().mappings.end(), [&](const auto& entry) {
    return entry.first < address + bytes && address < entry.first + entry.second.bytes;
  });
}

CUresult free_address(CUdeviceptr address, size_t size) {
  Call call("cuMemAddressFree", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  const auto found = state().reservations.find(address);
  if (found == state().reservations.end() || found->second != size ||
      touches_mapping(address, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ::munmap(reinterpret_cast<void*>(address), size);
  state().reservations.erase(found);
  return CUDA_SUCCESS;
}

// [whole]
CUresult map(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
             unsigned long long flags) {
  Call call("cuMemMap", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  const auto found = state().handles.find(handle);
  if (found == state().handles.end() || offset != 0 || flags != 0 || size == 0 ||
      size != found->second->bytes || address % kGranularity != 0 ||
      touches_mapping(address, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto above = state().reservations.upper_bound(address);
  if (above == state().reservations.begin()) return CUDA_ERROR_INVALID_VALUE;
  --above;
  if (address + size > above->first + above->second) return CUDA_ERROR_INVALID_VALUE;
  state().mappings[address] = Mapped{.bytes = size, .allocation = found->second};
  return CUDA_SUCCESS;
}

CUresult unmap(CUdeviceptr address, size_t size) {
  Call call("cuMemUnmap", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  const auto found = state().mappings.find(address);
  if (found == state().mappings.end() || found->second.bytes != size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  state().mappings.erase(found);
  return CUDA_SUCCESS;
}

CUresult set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc* desc, size_t count) {
  Call call("cuMemSetAccess", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  const auto found = state().mappings.find(address);
  if (found == state().mappings.end() || found->second.bytes != size || count != 1 ||
      desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      desc->location.id != found->second.allocation->device) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  found->second.readable = desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
  found->second.writable = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

CUresult get_info(size_t* free_bytes, size_t* total) {
  Call call("cuMemGetInfo", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  collect();
  const State& s = state();
  const uint64_t used = std::min(s.options.vram_bytes, s.used_bytes + s.options.taken_bytes);
  *total = s.options.vram_bytes;
  *free_bytes = s.options.vram_bytes - used;
  return CUDA_SUCCESS;
}

}  // namespace

// With the mutex held: the last handle or mapping of this process has gone.
Allocation::~Allocation() {
  if (alias != nullptr) ::munmap(alias, bytes);
  if (fd < 0) return;
  if (owned && others_hold(fd)) {
    state().limbo.push_back({fd, bytes});
    return;
  }
  if (owned) state().used_bytes -= bytes;
  ::close(fd);
}

bool is_reserved(CUdeviceptr address) {
  auto above = state().reservations.upper_bound(address);
  if (above == state().reservations.begin()) return false;
  --above;
  return address < above->first + above->second;
}

std::byte* device_bytes(CUdeviceptr address, uint64_t bytes, Touch touch) {
  auto above = state().mappings.upper_bound(address);
  if (above == state().mappings.begin()) return nullptr;
  --above;
  const Mapped& mapped = above->second;
  const uint64_t offset = address - above->first;
  if (offset > mapped.bytes || bytes > mapped.bytes - offset) return nullptr;
  if (touch == Touch::kWrite ? !mapped.writable : !mapped.readable) return nullptr;
  return mapped.allocation->alias + offset;
}

std::vector<Symbol> memory_symbols() {
  return {
      symbol<PFN_cuMemGetAllocationGranularity_v10020>("cuMemGetAllocationGranularity", 10020,
                                                       get_granularity),
      symbol<PFN_cuMemCreate_v10020>("cuMemCreate", 10020, create),
      symbol<PFN_cuMemRelease_v10020>("cuMemRelease", 10020, release),
      symbol<PFN_cuMemExportToShareableHandle_v10020>("cuMemExportToShareableHandle", 10020,
                                                      export_handle),
      symbol<PFN_cuMemImportFromShareableHandle_v10020>("cuMemImportFromShareableHandle", 10020,
                                                        import_handle),
      symbol<PFN_cuMemGetAllocationPropertiesFromHandle_v10020>(
          "cuMemGetAllocationPropertiesFromHandle", 10020, get_properties),
      symbol<PFN_cuMemAddressReserve_v10020>("cuMemAddressReserve", 10020, reserve),
      symbol<PFN_cuMemAddressFree_v10020>("cuMemAddressFree", 10020, free_address),
      symbol<PFN_cuMemMap_v10020>("cuMemMap", 10020, map),
      symbol<PFN_cuMemUnmap_v10020>("cuMemUnmap", 10020, unmap),
      symbol<PFN_cuMemSetAccess_v10020>("cuMemSetAccess", 10020, set_access),
      symbol<PFN_cuMemGetInfo_v3020>("cuMemGetInfo", 3020, get_info),
  };
}

}  // namespace fakecuda
