// Slabs on a GPU (see cuda/driver_device.h).
#include "cuda/driver_device.h"

#include <fcntl.h>
#include <poll.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/blocking_mover.h"
#include "cuda/device_checks.h"
#include "cuda/driver/address_arena.h"
#include "cuda/driver/context.h"
#include "cuda/driver/driver_carrier.h"
#include "cuda/driver/gpu.h"
#include "cuda/driver/slab_handle.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {
namespace {

// Addresses cost nothing. All memory can be mapped twice (a client has a reading and a writing
// view) with as much again for what lies between slabs of several sizes.
constexpr uint64_t kArenaPerMemory = 4;
// Freed memory comes back when the last importer lets go, which takes a step of an engine: so
// often, with such a pause between, it is asked for again before the answer is no.
constexpr int kAttempts = 20;
constexpr int kPauseMs = 5;
constexpr int64_t kRetryAfterMs = 100;

absl::StatusOr<AddressRange> reserve_addresses(const Gpu& gpu, uint64_t granularity) {
  size_t memory = 0;
  if (absl::Status status = gpu.call(gpu.api().device_total_mem, &memory, gpu.device());
      !status.ok()) {
    return status;
  }
  const uint64_t bytes = kArenaPerMemory * (memory / granularity + 1) * granularity;
  CUdeviceptr base = 0;
  if (absl::Status status = gpu.call(gpu.api().mem_address_reserve, &base, size_t{bytes}, size_t{0},
                                     CUdeviceptr{0}, 0ull);
      !status.ok()) {
    return status;
  }
  return AddressRange{base, bytes};
}

// The driver's "invalid value" in a user's words.
absl::Status not_a_slab(const absl::Status& status) {
  if (error_code(status) != ErrorCode::kInvalidArgument) return status;
  const ErrorDetail detail = error_detail(status);
  return make_error(ErrorCode::kInvalidArgument, "map a slab",
                    absl::StrCat("the descriptor is no slab, or one of another size (",
                                 detail.asked, ": ", detail.there, ")"),
                    "pass on what the daemon sent");
}

class DriverDevice final : public Device, private Slab::Owner {
 public:
  DriverDevice(std::unique_ptr<Gpu> gpu, DeviceProperties properties, AddressRange addresses)
      : gpu_(std::move(gpu)),
        properties_(std::move(properties)),
        addresses_(addresses),
        arena_(addresses),
        zeroer_([this](MoverOptions options, MoverCallback completed) {
          return create_mover(options, std::move(completed));
        }) {}
  ~DriverDevice() override;

  const DeviceProperties& properties() const override { return properties_; }
  uint64_t used_bytes() const override { return used_bytes_; }
  absl::Status health() const override { return gpu_->health(); }

  absl::StatusOr<Slab> create_slab(uint64_t bytes) override;
  absl::StatusOr<Fd> export_slab(const Slab& slab, Access access) override;
  absl::StatusOr<Mapping> map(Fd descriptor, uint64_t bytes, Access access) override;
  absl::Status scrub(const Slab& slab, uint64_t offset, uint64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Mover>> create_mover(MoverOptions options,
                                                      MoverCallback completed) override {
    return create_thread_mover(options, std::move(completed),
                               create_driver_carrier(*gpu_, addresses_));
  }

 private:
  absl::StatusOr<SlabHandle> allocate(uint64_t bytes) const;
  absl::Status out_of_memory(uint64_t asked) const;
  absl::StatusOr<Mapping> map_handle(const SlabHandle& handle, uint64_t bytes, Access access);
  absl::Status check_origin(const SlabHandle& handle) const;

  void release_slab(uint64_t native, uint64_t bytes) override {
    const SlabHandle released(*gpu_, native);
    used_bytes_ -= bytes;
  }
  static void unmap(void* device, std::byte* address, uint64_t bytes);

  const std::unique_ptr<Gpu> gpu_;
  const DeviceProperties properties_;
  const AddressRange addresses_;  // reserved; slabs are mapped into it
  AddressArena arena_;
  uint64_t used_bytes_ = 0;
  // Whether memory that was let go here can still be held elsewhere.
  enum class Shared : uint8_t { kNever, kPerhaps } shared_ = Shared::kNever;
  BlockingMover zeroer_;  // last: its thread uses the rest
};

DriverDevice::~DriverDevice() {
  MEMDECAY_CHECK(used_bytes_ == 0);
  gpu_->call(gpu_->api().mem_address_free, CUdeviceptr{addresses_.base}, size_t{addresses_.bytes})
      .IgnoreError();
}

absl::StatusOr<Mapping> DriverDevice::map_handle(const SlabHandle& handle, uint64_t bytes,
                                                 Access access) {
  const Api& api = gpu_->api();
  const std::optional<uint64_t> address = arena_.take(bytes);
  if (!address) {
    return make_error(ErrorCode::kResourceExhausted,
                      absl::StrCat("map a slab of ", bytes, " bytes"),
                      absl::StrCat("no free range of ", addresses_.bytes, " bytes of addresses"),
                      "use slabs of one size");
  }
  absl::Status status = gpu_->call(api.mem_map, CUdeviceptr{*address}, size_t{bytes}, size_t{0},
                                   handle.native(), 0ull);
  if (!status.ok()) {
    arena_.give_back(*address, bytes);
    return status;
  }
  // From here on the mapping undoes itself.
  Mapping mapping(reinterpret_cast<std::byte*>(*address), bytes, access,
                  Mapping::Reach::kDeviceOnly, unmap, this);
  CUmemAccessDesc wanted{};
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = gpu_->device();
  wanted.flags = access == Access::kReadWrite ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                              : CU_MEM_ACCESS_FLAGS_PROT_READ;
  status = gpu_->call(api.mem_set_access, CUdeviceptr{*address}, size_t{bytes},
                      static_cast<const CUmemAccessDesc*>(&wanted), size_t{1});
  if (!status.ok()) return status;
  return mapping;
}

void DriverDevice::unmap(void* device, std::byte* address, uint64_t bytes) {
  auto& self = *static_cast<DriverDevice*>(device);
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  // Addresses that the driver did not let go of are not used again.
  const auto& entry = self.gpu_->api().mem_unmap;
  if (self.gpu_->call(entry, at, size_t{bytes}).ok()) self.arena_.give_back(at, bytes);
}

// Who has the memory, as far as the driver says: what is neither free nor in our slabs belongs to
// other processes and contexts, or to freed slabs that an engine still maps.
absl::Status DriverDevice::out_of_memory(uint64_t asked) const {
  size_t free_bytes = 0;
  size_t total = 0;
  Context context(*gpu_);
  std::string there = absl::StrCat("slabs of this process have ", used_bytes_, " bytes");
  if (context.begin().ok() && gpu_->call(gpu_->api().mem_get_info, &free_bytes, &total).ok()) {
    const uint64_t known = free_bytes + used_bytes_;
    absl::StrAppend(&there, ", ", free_bytes, " of ", total, " are free, ",
                    total > known ? total - known : 0,
                    " are others': other processes, contexts, freed slabs that engines still map");
  }
  return make_error(
      {.code = ErrorCode::kResourceExhausted,
       .asked = absl::StrCat("a slab of ", asked, " bytes"),
       .there = std::move(there),
       .todo = "lower device.bytes, or free memory on the device (nvidia-smi names who has it)",
       .retry_after_ms = kRetryAfterMs});
}

absl::StatusOr<SlabHandle> DriverDevice::allocate(uint64_t bytes) const {
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<SlabHandle> made = create_handle(*gpu_, bytes);
    if (error_code(made.status()) != ErrorCode::kResourceExhausted) return made;
    if (attempt == kAttempts || shared_ == Shared::kNever) return out_of_memory(bytes);
    // The driver says to nobody when memory comes back.
    ::poll(nullptr, 0, kPauseMs);
  }
}

absl::StatusOr<Slab> DriverDevice::create_slab(uint64_t bytes) {
  if (absl::Status status = health(); !status.ok()) return status;
  if (absl::Status status = check_new_slab(properties_, used_bytes_, bytes); !status.ok())
    return status;
  absl::StatusOr<SlabHandle> handle = allocate(bytes);
  if (!handle.ok()) return handle.status();
  absl::StatusOr<Mapping> mapping = map_handle(*handle, bytes, Access::kReadWrite);
  if (!mapping.ok()) return mapping.status();
  used_bytes_ += bytes;
  Slab slab(this, handle->release(), *std::move(mapping));
  // Another process's bytes may be in it.
  if (absl::Status status = zeroer_.zero(slab.address(), bytes); !status.ok()) return status;
  return slab;
}

absl::StatusOr<Fd> DriverDevice::export_slab(const Slab& slab, Access) {
  MEMDECAY_CHECK(static_cast<bool>(slab));
  int descriptor = -1;
  if (absl::Status status = gpu_->call(gpu_->api().mem_export, static_cast<void*>(&descriptor),
                                       CUmemGenericAllocationHandle{slab.native()},
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull);
      !status.ok()) {
    return status;
  }
  Fd owned(descriptor);
  shared_ = Shared::kPerhaps;
  if (::fcntl(owned.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return make_error(ErrorCode::kInternal, "export a slab", "the driver gave no descriptor");
  }
  return owned;
}

absl::Status DriverDevice::check_origin(const SlabHandle& handle) const {
  const absl::StatusOr<CUdevice> found = device_of(*gpu_, handle);
  if (!found.ok()) return found.status();
  if (*found == gpu_->device()) return absl::OkStatus();
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("map a slab on ", gpu_->uuid()),
                    "its memory is on another device",
                    "let engine and daemon see the same GPU (CUDA_VISIBLE_DEVICES)");
}

absl::StatusOr<Mapping> DriverDevice::map(Fd descriptor, uint64_t bytes, Access access) {
  if (!descriptor || bytes == 0 || bytes % properties_.granularity_bytes != 0) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("map a slab of ", bytes, " bytes"),
                      "no descriptor, or not a slab's size", "pass on what the daemon sent");
  }
  const absl::StatusOr<SlabHandle> handle = import_handle(*gpu_, descriptor);
  if (!handle.ok()) return not_a_slab(handle.status());
  if (absl::Status origin = check_origin(*handle); !origin.ok()) return origin;
  absl::StatusOr<Mapping> mapping = map_handle(*handle, bytes, access);
  if (!mapping.ok()) return not_a_slab(mapping.status());
  return mapping;
}

absl::Status DriverDevice::scrub(const Slab& slab, uint64_t offset, uint64_t bytes) {
  if (absl::Status status = check_scrub(slab, offset, bytes); !status.ok()) return status;
  return zeroer_.zero(slab.address() + offset, bytes);
}

}  // namespace

absl::StatusOr<std::string> driver_device_of(const Fd& slab, const std::string& library) {
  const absl::StatusOr<std::unique_ptr<Gpu>> gpu = Gpu::open_driver(library);
  if (!gpu.ok()) return gpu.status();
  const absl::StatusOr<SlabHandle> handle = import_handle(**gpu, slab);
  if (!handle.ok()) return not_a_slab(handle.status());
  const absl::StatusOr<CUdevice> device = device_of(**gpu, *handle);
  if (!device.ok()) return device.status();
  if (absl::Status status = (*gpu)->choose(*device); !status.ok()) return status;
  return (*gpu)->uuid();
}

DriverSupport driver_support() { return DriverSupport::kBuiltIn; }

absl::StatusOr<std::unique_ptr<Device>> create_driver_device(const DriverDeviceOptions& options) {
  absl::StatusOr<std::unique_ptr<Gpu>> gpu = Gpu::open(options.library, options.uuid);
  if (!gpu.ok()) return gpu.status();
  const CUmemAllocationProp wanted = slab_properties((*gpu)->device());
  size_t granularity = 0;
  if (absl::Status status = (*gpu)->call((*gpu)->api().mem_get_granularity, &granularity, &wanted,
                                         CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
      !status.ok()) {
    return status;
  }
  DeviceProperties properties{.kind = DeviceKind::kCuda,
                              .uuid = (*gpu)->uuid(),
                              .granularity_bytes = granularity,
                              .limit_bytes = options.limit_bytes,
                              .exclusive_writer_per_slab = true,
                              .read_only_guard = ReadOnlyGuard::kMapping};
  const absl::StatusOr<AddressRange> addresses = reserve_addresses(**gpu, granularity);
  if (!addresses.ok()) return addresses.status();
  return std::unique_ptr<Device>(
      std::make_unique<DriverDevice>(*std::move(gpu), std::move(properties), *addresses));
}

}  // namespace memdecay::cuda
