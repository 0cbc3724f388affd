// The entry points of libcuda.so.1 that memdecay calls, and the only include of CUDA's headers.
// Each is asked for by name and by the version that brought it, and typed by the headers' typedef
// for just that version: a driver with another signature cannot be called by mistake.
// Thread: filled once, read by any. Not here: what a result means (results.h), devices (gpu.h).
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace memdecay::cuda {

// What every driver has that we can use (CUDA 12.0 and later), in alphabetical order but for the
// first two. Name here, name there, version.
#define MEMDECAY_DRIVER_ENTRIES(ENTRY)                                     \
  ENTRY(init, cuInit, 2000)                                                \
  ENTRY(driver_get_version, cuDriverGetVersion, 2020)                      \
  ENTRY(ctx_set_current, cuCtxSetCurrent, 4000)                            \
  ENTRY(device_get, cuDeviceGet, 2000)                                     \
  ENTRY(device_get_attribute, cuDeviceGetAttribute, 2000)                  \
  ENTRY(device_get_count, cuDeviceGetCount, 2000)                          \
  ENTRY(device_get_name, cuDeviceGetName, 2000)                            \
  ENTRY(device_get_uuid_gpu, cuDeviceGetUuid, 9020)                        \
  ENTRY(device_get_uuid_instance, cuDeviceGetUuid, 11040)                  \
  ENTRY(device_total_mem, cuDeviceTotalMem, 3020)                          \
  ENTRY(event_create, cuEventCreate, 2000)                                 \
  ENTRY(event_destroy, cuEventDestroy, 4000)                               \
  ENTRY(event_record, cuEventRecord, 2000)                                 \
  ENTRY(event_synchronize, cuEventSynchronize, 2000)                       \
  ENTRY(get_error_name, cuGetErrorName, 6000)                              \
  ENTRY(mem_address_free, cuMemAddressFree, 10020)                         \
  ENTRY(mem_address_reserve, cuMemAddressReserve, 10020)                   \
  ENTRY(mem_create, cuMemCreate, 10020)                                    \
  ENTRY(mem_export, cuMemExportToShareableHandle, 10020)                   \
  ENTRY(mem_free_host, cuMemFreeHost, 2000)                                \
  ENTRY(mem_get_granularity, cuMemGetAllocationGranularity, 10020)         \
  ENTRY(mem_get_info, cuMemGetInfo, 3020)                                  \
  ENTRY(mem_get_properties, cuMemGetAllocationPropertiesFromHandle, 10020) \
  ENTRY(mem_host_alloc, cuMemHostAlloc, 2020)                              \
  ENTRY(mem_import, cuMemImportFromShareableHandle, 10020)                 \
  ENTRY(mem_map, cuMemMap, 10020)                                          \
  ENTRY(mem_release, cuMemRelease, 10020)                                  \
  ENTRY(mem_set_access, cuMemSetAccess, 10020)                             \
  ENTRY(mem_unmap, cuMemUnmap, 10020)                                      \
  ENTRY(memcpy_device_to_device, cuMemcpyDtoDAsync, 3020)                  \
  ENTRY(memcpy_device_to_host, cuMemcpyDtoHAsync, 3020)                    \
  ENTRY(memcpy_host_to_device, cuMemcpyHtoDAsync, 3020)                    \
  ENTRY(memset, cuMemsetD8Async, 3020)                                     \
  ENTRY(pointer_get_attribute, cuPointerGetAttribute, 4000)                \
  ENTRY(primary_ctx_release, cuDevicePrimaryCtxRelease, 11000)             \
  ENTRY(primary_ctx_retain, cuDevicePrimaryCtxRetain, 7000)                \
  ENTRY(stream_create, cuStreamCreate, 2000)                               \
  ENTRY(stream_destroy, cuStreamDestroy, 4000)                             \
  ENTRY(stream_synchronize, cuStreamSynchronize, 2000)

template <typename Signature>
struct Entry {
  const char* name;
  int since;
  Signature function = nullptr;
};

struct Api {
#define MEMDECAY_DRIVER_ENTRY(member, symbol, version) \
  Entry<PFN_##symbol##_v##version> member{#symbol, version};
  MEMDECAY_DRIVER_ENTRIES(MEMDECAY_DRIVER_ENTRY)
#undef MEMDECAY_DRIVER_ENTRY
  int version = 0;  // of CUDA that the driver is for: 12040, 13000
};

// Loads the library, for the life of the process, and finds every entry.
// unsupported: there is no driver, it is too old, or it lacks an entry (which is named).
absl::StatusOr<Api> load_api(const std::string& library);

}  // namespace memdecay::cuda
