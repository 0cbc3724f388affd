// See any_device.h.
#include "cuda/any_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/host_device.h"
#include "cuda/sealed_memory.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {
namespace {

absl::Status only_imports(std::string asked) {
  return make_error(ErrorCode::kUnsupported, std::move(asked), "this device only imports",
                    "ask the daemon for pages");
}

class AnyDevice final : public Device {
 public:
  AnyDevice(std::unique_ptr<Device> host, std::string library)
      : host_(std::move(host)), library_(std::move(library)) {}

  const DeviceProperties& properties() const override { return current().properties(); }
  uint64_t used_bytes() const override { return 0; }
  absl::Status health() const override { return current().health(); }

  absl::StatusOr<Slab> create_slab(uint64_t bytes) override {
    return only_imports(absl::StrCat("a slab of ", bytes, " bytes"));
  }
  absl::StatusOr<Fd> export_slab(const Slab&, Access) override { return only_imports("export"); }
  absl::Status scrub(const Slab&, uint64_t, uint64_t) override { return only_imports("scrub"); }

  absl::StatusOr<Mapping> map(Fd descriptor, uint64_t bytes, Access access) override {
    if (!descriptor || is_sealed_memory(descriptor.get(), bytes)) {
      return host_->map(std::move(descriptor), bytes, access);
    }
    if (absl::Status status = find_gpu(descriptor); !status.ok()) return status;
    return gpu_->map(std::move(descriptor), bytes, access);
  }
  absl::StatusOr<std::unique_ptr<Mover>> create_mover(MoverOptions options,
                                                      MoverCallback completed) override {
    return current().create_mover(options, std::move(completed));
  }

 private:
  Device& current() const { return gpu_ != nullptr ? *gpu_ : *host_; }

  absl::Status find_gpu(const Fd& descriptor) {
    const absl::StatusOr<std::string> uuid = driver_device_of(descriptor, library_);
    if (!uuid.ok()) return uuid.status();
    if (gpu_ == nullptr) {
      auto made = create_driver_device({.uuid = *uuid, .library = library_});
      if (!made.ok()) return made.status();
      gpu_ = *std::move(made);
    }
    if (gpu_->properties().uuid == *uuid) return absl::OkStatus();
    return make_error(ErrorCode::kUnsupported, absl::StrCat("map a slab on ", *uuid),
                      absl::StrCat("this client has slabs on ", gpu_->properties().uuid),
                      "connect once for each GPU");
  }

  const std::unique_ptr<Device> host_;
  const std::string library_;
  std::unique_ptr<Device> gpu_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> create_any_device(std::string library) {
  absl::StatusOr<std::unique_ptr<Device>> host = create_host_device({});
  if (!host.ok()) return host.status();
  return std::unique_ptr<Device>(std::make_unique<AnyDevice>(*std::move(host), std::move(library)));
}

}  // namespace memdecay::cuda
