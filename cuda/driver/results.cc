// The table of results (see results.h). Those that a program of ours cannot provoke or act on fall
// through to `internal`.
#include "cuda/driver/results.h"

namespace memdecay::cuda {

bool is_sticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_RPC_FAILURE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

ErrorCode code_of(CUresult result) {
  if (is_sticky(result)) return ErrorCode::kDeviceLost;
  switch (result) {
    case CUDA_SUCCESS:
      return ErrorCode::kOk;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return ErrorCode::kResourceExhausted;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
      return ErrorCode::kInvalidArgument;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
      return ErrorCode::kNotFound;
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
    case CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED:
      return ErrorCode::kBusy;
    case CUDA_ERROR_NOT_PERMITTED:
      return ErrorCode::kPermission;
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
      return ErrorCode::kUnavailable;
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    case CUDA_ERROR_NOT_SUPPORTED:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kInternal;
  }
}

std::string remedy_of(CUresult result) {
  if (is_sticky(result)) {
    return "restart this process: a CUDA context does not recover; see dmesg for an Xid";
  }
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "lower device.bytes, or free memory on the device (nvidia-smi names who has it)";
    case CUDA_ERROR_NO_DEVICE:
      return "no GPU is visible: check nvidia-smi, CUDA_VISIBLE_DEVICES and the container's "
             "devices";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return "the GPU is in exclusive mode: nvidia-smi -c DEFAULT, or run all its users under MPS";
    case CUDA_ERROR_STUB_LIBRARY:
      return "the toolkit's stub was loaded: take lib64/stubs out of LD_LIBRARY_PATH";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return "driver library and kernel module are of different versions: reboot, or reload the "
             "module";
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return "start the fabric manager (nvidia-fabricmanager) and try again";
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
    case CUDA_ERROR_MPS_SERVER_NOT_READY:
      return "check that the MPS daemon runs and CUDA_MPS_PIPE_DIRECTORY names its directory";
    case CUDA_ERROR_OPERATING_SYSTEM:
      return "check the permissions of /dev/nvidia* and the limits of the container";
    case CUDA_ERROR_NOT_PERMITTED:
      return "run as a user who may open /dev/nvidia*";
    default:
      return "report it with the driver's version and the daemon's log";
  }
}

}  // namespace memdecay::cuda
