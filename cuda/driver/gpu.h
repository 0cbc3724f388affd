// Gpu: one device of one driver, found by UUID, and how the driver is called: call() gives every
// result as a status that names the call, the device and the driver's own word for what went wrong.
// A sticky result makes the device lost, for ever: health() says so from then on.
// Making one needs no CUDA context and takes no device memory.
// Thread: any; only the first loss is kept, under a leaf mutex.
// Not here: slabs (driver_device.cc), contexts and streams (driver_carrier.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cuda/driver/api.h"

namespace memdecay::cuda {

class Gpu {
 public:
  // `uuid` as nvidia-smi -L prints it, "GPU-…" or "MIG-…"; empty: the only one there is.
  // unsupported: no driver, too old, no virtual memory management; not_found: no such device
  // (those there are are named); invalid_argument: a GPU that is divided into MIG instances;
  // busy: exclusive or prohibited mode.
  static absl::StatusOr<std::unique_ptr<Gpu>> open(const std::string& library,
                                                   const std::string& uuid);

  // The driver alone, no device chosen; choose() takes one by the driver's own number.
  static absl::StatusOr<std::unique_ptr<Gpu>> open_driver(const std::string& library);
  absl::Status choose(CUdevice device);

  const Api& api() const { return api_; }
  CUdevice device() const { return device_; }
  const std::string& uuid() const { return uuid_; }
  const std::string& name() const { return name_; }

  template <typename Signature, typename... Arguments>
  absl::Status call(const Entry<Signature>& entry, Arguments... arguments) const {
    return judge(entry.name, entry.function(arguments...));
  }
  absl::Status judge(const char* call, CUresult result) const;
  // ok, or the first device_lost.
  absl::Status health() const;

 private:
  explicit Gpu(const Api& api) : api_(api) {}
  absl::Status find(const std::string& uuid);
  absl::Status check_mode();
  absl::Status check_abilities();
  absl::StatusOr<int> attribute(CUdevice_attribute attribute) const;

  const Api api_;
  CUdevice device_ = 0;
  std::string uuid_;         // of the MIG instance, if it is one
  std::string parent_uuid_;  // of the whole GPU
  std::string name_;
  mutable absl::Mutex mutex_;
  mutable absl::Status lost_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace memdecay::cuda
