// See slab_handle.h.
#include "cuda/driver/slab_handle.h"

#include "proto/contract/error.h"

namespace memdecay::cuda {

CUmemAllocationProp slab_properties(CUdevice device) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = device;
  return wanted;
}

absl::StatusOr<SlabHandle> create_handle(const Gpu& gpu, uint64_t bytes) {
  const CUmemAllocationProp wanted = slab_properties(gpu.device());
  CUmemGenericAllocationHandle native = 0;
  absl::Status made = gpu.call(gpu.api().mem_create, &native, size_t{bytes}, &wanted, 0ull);
  if (!made.ok()) return made;
  return SlabHandle(gpu, native);
}

absl::StatusOr<SlabHandle> import_handle(const Gpu& gpu, const Fd& descriptor) {
  CUmemGenericAllocationHandle native = 0;
  // The driver wants the number itself where a pointer stands.
  auto* number = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor.get()));
  absl::Status imported =
      gpu.call(gpu.api().mem_import, &native, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  if (!imported.ok()) return imported;
  return SlabHandle(gpu, native);
}

absl::StatusOr<CUdevice> device_of(const Gpu& gpu, const SlabHandle& handle) {
  CUmemAllocationProp found{};
  absl::Status status = gpu.call(gpu.api().mem_get_properties, &found, handle.native());
  if (!status.ok()) return status;
  if (found.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return make_error(ErrorCode::kInvalidArgument, "a slab's memory", "it is not a device's");
  }
  return found.location.id;
}

}  // namespace memdecay::cuda
