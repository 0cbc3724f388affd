// Host memory that the driver was told of, and what kind of address an address is.
#include <cudaTypedefs.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>

#include "tests/support/fakecuda/fake.h"

namespace fakecuda {
namespace {

// No call takes more: one of 512 GiB has failed on real drivers and broken the context.
constexpr uint64_t kLargestRegistration = uint64_t{1} << 30;

bool overlaps(const std::byte* at, uint64_t bytes) {
  for (const auto& [start, range] : state().host_ranges) {
    if (start < at + bytes && at < start + range.bytes) return true;
  }
  return false;
}

CUresult host_alloc(void** address, size_t bytes, unsigned int) {
  Call call("cuMemHostAlloc", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(at, kPoison, bytes);
  state().host_ranges[static_cast<std::byte*>(at)] = {.bytes = bytes, .allocated = true};
  *address = at;
  return CUDA_SUCCESS;
}

CUresult free_host(void* address) {
  Call call("cuMemFreeHost", Needs::kContext);
  if (call.result != CUDA_SUCCESS && call.result != state().sticky) return call.result;
  const auto found = state().host_ranges.find(static_cast<std::byte*>(address));
  if (found == state().host_ranges.end() || !found->second.allocated) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ::munmap(address, found->second.bytes);
  state().host_ranges.erase(found);
  return call.result;
}

CUresult host_register(void* address, size_t bytes, unsigned int) {
  Call call("cuMemHostRegister", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  auto* at = static_cast<std::byte*>(address);
  if (at == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kLargestRegistration) {
    broke_rule("a registration of more than 1 GiB");
    state().sticky = CUDA_ERROR_UNKNOWN;
    return CUDA_ERROR_UNKNOWN;
  }
  if (overlaps(at, bytes)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  struct rlimit limit {};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  uint64_t locked = bytes;
  for (const auto& [start, range] : state().host_ranges) {
    if (!range.allocated) locked += range.bytes;
  }
  if (limit.rlim_cur != RLIM_INFINITY && locked > limit.rlim_cur) return CUDA_ERROR_OUT_OF_MEMORY;
  state().host_ranges[at] = {.bytes = bytes};
  return CUDA_SUCCESS;
}

CUresult host_unregister(void* address) {
  Call call("cuMemHostUnregister", Needs::kContext);
  if (call.result != CUDA_SUCCESS && call.result != state().sticky) return call.result;
  const auto found = state().host_ranges.find(static_cast<std::byte*>(address));
  if (found == state().host_ranges.end() || found->second.allocated) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  state().host_ranges.erase(found);
  return call.result;
}

CUresult pointer_attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  Call call("cuPointerGetAttribute", Needs::kContext);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE) return CUDA_ERROR_INVALID_VALUE;
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  if (is_reserved(address)) {
    type = CU_MEMORYTYPE_DEVICE;
  } else if (pinned_bytes(reinterpret_cast<void*>(address), 1) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *static_cast<CUmemorytype*>(value) = type;
  return CUDA_SUCCESS;
}

}  // namespace

std::byte* pinned_bytes(const void* address, uint64_t bytes) {
  auto* at = const_cast<std::byte*>(static_cast<const std::byte*>(address));
  auto above = state().host_ranges.upper_bound(at);
  if (above == state().host_ranges.begin()) return nullptr;
  --above;
  const auto offset = static_cast<uint64_t>(at - above->first);
  return offset <= above->second.bytes && bytes <= above->second.bytes - offset ? at : nullptr;
}

std::vector<Symbol> host_symbols() {
  return {
      symbol<PFN_cuMemHostAlloc_v2020>("cuMemHostAlloc", 2020, host_alloc),
      symbol<PFN_cuMemFreeHost_v2000>("cuMemFreeHost", 2000, free_host),
      symbol<PFN_cuMemHostRegister_v6050>("cuMemHostRegister", 6050, host_register),
      symbol<PFN_cuMemHostUnregister_v4000>("cuMemHostUnregister", 4000, host_unregister),
      symbol<PFN_cuPointerGetAttribute_v4000>("cuPointerGetAttribute", 4000, pointer_attribute),
  };
}

}  // namespace fakecuda
