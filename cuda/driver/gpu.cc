// Finding a device by its UUID, and judging results (see gpu.h).
#include "cuda/driver/gpu.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cuda/driver/results.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {
namespace {

// 8-4-4-4-12 hex digits, as nvidia-smi prints it.
std::string format_uuid(const char* kind, const CUuuid& uuid) {
  const std::string hex = absl::BytesToHexString(absl::string_view(uuid.bytes, sizeof uuid.bytes));
  return absl::StrCat(kind, hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

}  // namespace

absl::Status Gpu::judge(const char* call, CUresult result) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  if (api_.get_error_name.function(result, &name) != CUDA_SUCCESS || name == nullptr)
    name = "error";
  absl::Status status =
      make_error(code_of(result), absl::StrCat(call, " on ", uuid_.empty() ? "the driver" : uuid_),
                 absl::StrCat(name, " (", static_cast<int>(result), ")"), remedy_of(result));
  if (is_sticky(result)) {
    absl::MutexLock lock(&mutex_);
    if (lost_.ok()) lost_ = status;
  }
  return status;
}

absl::Status Gpu::health() const {
  absl::MutexLock lock(&mutex_);
  return lost_;
}

absl::StatusOr<int> Gpu::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  if (absl::Status status = call(api_.device_get_attribute, &value, attribute, device_);
      !status.ok()) {
    return status;
  }
  return value;
}

absl::Status Gpu::choose(CUdevice device) {
  CUuuid gpu{};
  CUuuid instance{};
  std::array<char, 128> name{};
  if (absl::Status status = call(api_.device_get_uuid_gpu, &gpu, device); !status.ok())
    return status;
  if (absl::Status status = call(api_.device_get_uuid_instance, &instance, device); !status.ok()) {
    return status;
  }
  if (absl::Status status =
          call(api_.device_get_name, name.data(), static_cast<int>(name.size()) - 1, device);
      !status.ok()) {
    return status;
  }
  device_ = device;
  name_ = name.data();
  parent_uuid_ = format_uuid("GPU-", gpu);
  const std::string as_instance = format_uuid("MIG-", instance);
  uuid_ = as_instance.substr(4) == parent_uuid_.substr(4) ? parent_uuid_ : as_instance;
  return absl::OkStatus();
}

absl::Status Gpu::find(const std::string& uuid) {
  int count = 0;
  if (absl::Status status = call(api_.device_get_count, &count); !status.ok()) return status;
  std::vector<std::string> seen;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    if (absl::Status status = call(api_.device_get, &device, ordinal); !status.ok()) return status;
    if (absl::Status status = choose(device); !status.ok()) return status;
    if (uuid_ == uuid || (uuid.empty() && count == 1)) return absl::OkStatus();
    if (parent_uuid_ == uuid) {
      return make_error(ErrorCode::kInvalidArgument, absl::StrCat("device ", uuid),
                        absl::StrCat("it is divided into MIG instances; this process sees ", uuid_),
                        "give the instance's UUID (nvidia-smi -L), and name it in "
                        "CUDA_VISIBLE_DEVICES too: the driver shows a process only one");
    }
    seen.push_back(uuid_);
  }
  return make_error(ErrorCode::kNotFound,
                    uuid.empty() ? std::string("the only device") : absl::StrCat("device ", uuid),
                    seen.empty() ? std::string("the driver shows none")
                                 : absl::StrCat("the driver shows ", absl::StrJoin(seen, ", ")),
                    "name one of them in CUDA_VISIBLE_DEVICES; nvidia-smi -L lists what there is");
}

absl::Status Gpu::check_mode() {
  const absl::StatusOr<int> mode = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
  if (!mode.ok()) return mode.status();
  if (*mode == CU_COMPUTEMODE_DEFAULT) return absl::OkStatus();
  if (*mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS) {
    // A driver that does not know the attribute has no MPS that could be asked for.
    const absl::StatusOr<int> mps = attribute(CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
    if (mps.ok() && *mps != 0) return absl::OkStatus();
  }
  return make_error(ErrorCode::kBusy, absl::StrCat("use ", uuid_),
                    *mode == CU_COMPUTEMODE_PROHIBITED
                        ? "its compute mode lets no process use it"
                        : "its compute mode lets one process use it, and engines are others",
                    "nvidia-smi -c DEFAULT, or run daemon and engines under MPS");
}

absl::Status Gpu::check_abilities() {
  for (const auto& [wanted, what] :
       {std::pair{CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                  "virtual memory management"},
        std::pair{CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                  "memory handles as file descriptors"}}) {
    const absl::StatusOr<int> has = attribute(wanted);
    if (!has.ok()) return has.status();
    if (*has == 0) {
      return make_error(
          ErrorCode::kUnsupported, absl::StrCat("use ", uuid_, " (", name_, ")"),
          absl::StrCat("it has no ", what),
          "use another GPU (Volta or later, no vGPU without it), or device.kind: host");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Gpu>> Gpu::open_driver(const std::string& library) {
  const absl::StatusOr<Api> api = load_api(library);
  if (!api.ok()) return api.status();
  std::unique_ptr<Gpu> gpu(new Gpu(*api));
  if (absl::Status status = gpu->call(gpu->api_.init, 0u); !status.ok()) return status;
  return gpu;
}

absl::StatusOr<std::unique_ptr<Gpu>> Gpu::open(const std::string& library,
                                               const std::string& uuid) {
  absl::StatusOr<std::unique_ptr<Gpu>> gpu = open_driver(library);
  if (!gpu.ok()) return gpu.status();
  if (absl::Status status = (*gpu)->find(uuid); !status.ok()) return status;
  if (absl::Status status = (*gpu)->check_mode(); !status.ok()) return status;
  if (absl::Status status = (*gpu)->check_abilities(); !status.ok()) return status;
  return gpu;
}

}  // namespace memdecay::cuda
