// SlabHandle: one reference to device memory that the driver counts: what cuMemCreate or the import
// of a descriptor gives, released when it goes. Mappings keep the memory alive by themselves.
// Thread: a value, one owner; the gpu outlives it. Not here: mapping (driver_device.cc).
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "cuda/device.h"
#include "cuda/driver/gpu.h"

namespace memdecay::cuda {

class SlabHandle {
 public:
  SlabHandle(const Gpu& gpu, CUmemGenericAllocationHandle native) : gpu_(&gpu), native_(native) {}
  SlabHandle(SlabHandle&& other) noexcept
      : gpu_(other.gpu_), native_(std::exchange(other.native_, 0)) {}
  SlabHandle& operator=(SlabHandle&&) = delete;
  ~SlabHandle() {
    if (native_ != 0) gpu_->call(gpu_->api().mem_release, native_).IgnoreError();
  }

  CUmemGenericAllocationHandle native() const { return native_; }
  // Somebody else releases it from now on.
  CUmemGenericAllocationHandle release() { return std::exchange(native_, 0); }

 private:
  const Gpu* gpu_;
  CUmemGenericAllocationHandle native_;
};

// What slabs are made of: pinned memory on this GPU, exportable as a POSIX descriptor.
CUmemAllocationProp slab_properties(CUdevice device);
// resource_exhausted: asked once, without a word about who has the memory.
absl::StatusOr<SlabHandle> create_handle(const Gpu& gpu, uint64_t bytes);
// The descriptor stays the caller's. invalid_argument: it is no such memory.
absl::StatusOr<SlabHandle> import_handle(const Gpu& gpu, const Fd& descriptor);
// The driver's number of the device whose memory it is.
absl::StatusOr<CUdevice> device_of(const Gpu& gpu, const SlabHandle& handle);

}  // namespace memdecay::cuda
