// Memfd slabs behind the device port (see host_device.h).
#include "cuda/host_device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cuda/device_checks.h"
#include "cuda/host_mover.h"
#include "cuda/sealed_memory.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::cuda {
namespace {

// fallocate would take page after page until the kernel kills somebody.
bool fits_this_machine(uint64_t bytes) {
  struct sysinfo info {};
  return ::sysinfo(&info) != 0 || bytes / info.mem_unit < info.totalram;
}

absl::Status machine_error(std::string asked, int error) {
  return make_error(ErrorCode::kResourceExhausted, std::move(asked), std::strerror(error),
                    "lower the size or free memory on this machine");
}

absl::StatusOr<Mapping> map_slab(int fd, uint64_t bytes, Access access) {
  std::optional<Mapping> mapping = map_sealed_memory(fd, bytes, access, Prefault::kYes);
  if (mapping) return *std::move(mapping);
  if (errno == EACCES || errno == EPERM) {
    return make_error(ErrorCode::kPermission, "map a slab writable", "the descriptor is read-only",
                      "ask the daemon for a writable slab");
  }
  return machine_error(absl::StrCat("map a slab of ", bytes, " bytes"), errno);
}

class HostDevice final : public Device, private Slab::Owner {
 public:
  explicit HostDevice(DeviceProperties properties) : properties_(std::move(properties)) {}
  ~HostDevice() override { MEMDECAY_CHECK(used_bytes_ == 0); }

  const DeviceProperties& properties() const override { return properties_; }
  uint64_t used_bytes() const override { return used_bytes_; }
  absl::Status health() const override { return absl::OkStatus(); }

  absl::StatusOr<Slab> create_slab(uint64_t bytes) override;
  absl::StatusOr<Fd> export_slab(const Slab& slab, Access access) override;
  absl::StatusOr<Mapping> map(Fd descriptor, uint64_t bytes, Access access) override;
  absl::Status scrub(const Slab& slab, uint64_t offset, uint64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Mover>> create_mover(MoverOptions options,
                                                      MoverCallback completed) override {
    return create_host_mover(options, std::move(completed));
  }

 private:
  void release_slab(uint64_t native, uint64_t bytes) override {
    ::close(static_cast<int>(native));
    used_bytes_ -= bytes;
  }

  DeviceProperties properties_;
  uint64_t used_bytes_ = 0;
};

absl::StatusOr<Slab> HostDevice::create_slab(uint64_t bytes) {
  if (absl::Status status = check_new_slab(properties_, used_bytes_, bytes); !status.ok()) {
    return status;
  }
  const std::string asked = absl::StrCat("a slab of ", bytes, " bytes");
  if (!fits_this_machine(bytes)) return machine_error(asked, ENOMEM);
  Fd fd = create_sealed_memory("memdecay-slab", bytes, Prefault::kYes);
  if (!fd) return machine_error(asked, errno);
  absl::StatusOr<Mapping> mapping = map_slab(fd.get(), bytes, Access::kReadWrite);
  if (!mapping.ok()) return mapping.status();
#ifdef MADV_POPULATE_WRITE
  // Writable page tables in advance; older kernels do without and take soft faults.
  ::madvise(mapping->address(), bytes, MADV_POPULATE_WRITE);
#endif
  used_bytes_ += bytes;
  return Slab(this, static_cast<uint64_t>(fd.release()), *std::move(mapping));
}

absl::StatusOr<Fd> HostDevice::export_slab(const Slab& slab, Access access) {
  MEMDECAY_CHECK(static_cast<bool>(slab));
  const int fd = static_cast<int>(slab.native());
  if (access == Access::kReadWrite) {
    Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy) return machine_error("export a slab", errno);
    return copy;
  }
  Fd reopened = reopen_read_only(fd);
  if (!reopened) return machine_error("export a slab read-only", errno);
  return reopened;
}

absl::StatusOr<Mapping> HostDevice::map(Fd descriptor, uint64_t bytes, Access access) {
  if (bytes == 0 || !is_sealed_memory(descriptor.get(), bytes)) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("map a slab of ", bytes, " bytes"),
                      "not a sealed memfd of that size", "pass on what the daemon sent");
  }
  return map_slab(descriptor.get(), bytes, access);
}

absl::Status HostDevice::scrub(const Slab& slab, uint64_t offset, uint64_t bytes) {
  if (absl::Status status = check_scrub(slab, offset, bytes); !status.ok()) return status;
  std::memset(slab.address() + offset, 0, bytes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> create_host_device(const HostDeviceOptions& options) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t granularity = options.granularity_bytes == 0 ? page : options.granularity_bytes;
  if (granularity % page != 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("a granularity of ", granularity, " bytes"),
                      absl::StrCat("this machine's pages have ", page), "use a multiple");
  }
  return std::unique_ptr<Device>(std::make_unique<HostDevice>(
      DeviceProperties{.kind = DeviceKind::kHost,
                       .uuid = options.uuid,
                       .granularity_bytes = granularity,
                       .limit_bytes = options.limit_bytes,
                       .exclusive_writer_per_slab = true,
                       .read_only_guard = ReadOnlyGuard::kDescriptor}));
}

}  // namespace memdecay::cuda
