// Devices, contexts and the way in: cuGetProcAddress with the traps of the real one.
#include <cudaTypedefs.h>

#include <cstdio>
#include <cstring>

#include "tests/support/fakecuda/fake.h"

namespace fakecuda {
namespace {

// A primary context is its device's number, as a pointer.
thread_local int current_device = -1;

CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(static_cast<uintptr_t>(0xc000 + device));
}

bool known(CUdevice device) { return device >= 0 && device < state().options.devices; }

CUresult init(unsigned int flags) {
  Call call("cuInit", Needs::kNothing);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (state().options.no_device || state().options.devices == 0) return CUDA_ERROR_NO_DEVICE;
  state().initialised = true;
  return CUDA_SUCCESS;
}

CUresult driver_get_version(int* version) {
  Call call("cuDriverGetVersion", Needs::kNothing);
  *version = state().options.version;
  return call.result;
}

CUresult device_get_count(int* count) {
  Call call("cuDeviceGetCount", Needs::kInit);
  *count = state().options.devices;
  return call.result;
}

CUresult device_get(CUdevice* device, int ordinal) {
  Call call("cuDeviceGet", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult device_get_name(char* name, int length, CUdevice device) {
  Call call("cuDeviceGetName", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<size_t>(length), "fake device %d, no GPU", device);
  return CUDA_SUCCESS;
}

void fill_uuid(CUuuid* uuid, CUdevice device, char kind) {
  std::memset(uuid->bytes, 0, sizeof uuid->bytes);
  std::memcpy(uuid->bytes, "fakecuda", 8);
  uuid->bytes[14] = kind;
  uuid->bytes[15] = static_cast<char>(device);
}

// As of 9.2: the whole GPU, also from inside a MIG instance.
CUresult device_get_uuid_gpu(CUuuid* uuid, CUdevice device) {
  Call call("cuDeviceGetUuid", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  fill_uuid(uuid, device, 0);
  return CUDA_SUCCESS;
}

CUresult device_get_uuid_instance(CUuuid* uuid, CUdevice device) {
  Call call("cuDeviceGetUuid_v2", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  fill_uuid(uuid, device, state().options.mig ? 1 : 0);
  return CUDA_SUCCESS;
}

CUresult device_get_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  Call call("cuDeviceGetAttribute", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Options& options = state().options;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      *value = options.no_vmm ? 0 : 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      *value = options.no_posix_fd ? 0 : 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
      *value = options.mps ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
      *value = 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      *value = options.mode == ComputeMode::kDefault     ? CU_COMPUTEMODE_DEFAULT
               : options.mode == ComputeMode::kExclusive ? CU_COMPUTEMODE_EXCLUSIVE_PROCESS
                                                         : CU_COMPUTEMODE_PROHIBITED;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult device_total_mem(size_t* bytes, CUdevice device) {
  Call call("cuDeviceTotalMem", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = state().options.vram_bytes;
  return CUDA_SUCCESS;
}

CUresult primary_retain(CUcontext* context, CUdevice device) {
  Call call("cuDevicePrimaryCtxRetain", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Options& options = state().options;
  // [modes]: exclusive means that somebody else was first.
  const bool exclusive = options.mode == ComputeMode::kExclusive && !options.mps;
  if (exclusive || options.mode == ComputeMode::kProhibited) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (state().sticky != CUDA_SUCCESS) return state().sticky;
  ++state().contexts[device];
  *context = context_of(device);
  return CUDA_SUCCESS;
}

CUresult primary_release(CUdevice device) {
  Call call("cuDevicePrimaryCtxRelease", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  const auto found = state().contexts.find(device);
  if (found == state().contexts.end()) return CUDA_ERROR_INVALID_CONTEXT;
  if (--found->second == 0) state().contexts.erase(found);
  return CUDA_SUCCESS;
}

CUresult ctx_set_current(CUcontext context) {
  Call call("cuCtxSetCurrent", Needs::kInit);
  if (call.result != CUDA_SUCCESS) return call.result;
  current_device = -1;
  if (context == nullptr) return CUDA_SUCCESS;
  for (const auto& [device, times] : state().contexts) {
    if (context_of(device) == context) current_device = device;
  }
  return current_device >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult get_error_name(CUresult error, const char** text) {
  switch (error) {
    case CUDA_ERROR_INVALID_VALUE:
      *text = "CUDA_ERROR_INVALID_VALUE";
      return CUDA_SUCCESS;
    case CUDA_ERROR_OUT_OF_MEMORY:
      *text = "CUDA_ERROR_OUT_OF_MEMORY";
      return CUDA_SUCCESS;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return CUDA_SUCCESS;
    default:
      *text = nullptr;
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

bool has_context() { return state().contexts.contains(current_device); }

std::vector<Symbol> device_symbols() {
  return {
      symbol<PFN_cuInit_v2000>("cuInit", 2000, init),
      symbol<PFN_cuDriverGetVersion_v2020>("cuDriverGetVersion", 2020, driver_get_version),
      symbol<PFN_cuGetErrorName_v6000>("cuGetErrorName", 6000, get_error_name),
      symbol<PFN_cuDeviceGetCount_v2000>("cuDeviceGetCount", 2000, device_get_count),
      symbol<PFN_cuDeviceGet_v2000>("cuDeviceGet", 2000, device_get),
      symbol<PFN_cuDeviceGetName_v2000>("cuDeviceGetName", 2000, device_get_name),
      symbol<PFN_cuDeviceGetUuid_v9020>("cuDeviceGetUuid", 9020, device_get_uuid_gpu),
      symbol<PFN_cuDeviceGetUuid_v11040>("cuDeviceGetUuid", 11040, device_get_uuid_instance),
      symbol<PFN_cuDeviceGetAttribute_v2000>("cuDeviceGetAttribute", 2000, device_get_attribute),
      symbol<PFN_cuDeviceTotalMem_v3020>("cuDeviceTotalMem", 3020, device_total_mem),
      symbol<PFN_cuDevicePrimaryCtxRetain_v7000>("cuDevicePrimaryCtxRetain", 7000, primary_retain),
      symbol<PFN_cuDevicePrimaryCtxRelease_v11000>("cuDevicePrimaryCtxRelease", 11000,
                                                   primary_release),
      symbol<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent", 4000, ctx_set_current),
  };
}

}  // namespace fakecuda

// [procaddr]: the newest version that driver and caller both know, whatever the caller meant.
extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
cuGetProcAddress(const char* name, void** function, int version, cuuint64_t,
                 CUdriverProcAddressQueryResult* status) {
  using fakecuda::Symbol;
  const fakecuda::Call call("cuGetProcAddress", fakecuda::Needs::kNothing);
  *function = nullptr;
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (call.result != CUDA_SUCCESS) return call.result;
  const fakecuda::Options& options = fakecuda::state().options;
  if (options.without.contains(name)) return CUDA_ERROR_NOT_FOUND;
  int best = 0;
  for (const auto& group :
       {fakecuda::device_symbols(), fakecuda::memory_symbols(), fakecuda::host_symbols(),
        fakecuda::stream_symbols(), fakecuda::copy_symbols()}) {
    for (const Symbol& symbol : group) {
      const bool there = symbol.since <= options.version && symbol.since <= version;
      if (std::strcmp(symbol.name, name) != 0 || !there || symbol.since < best) continue;
      best = symbol.since;
      *function = symbol.function;
    }
  }
  if (*function == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}
