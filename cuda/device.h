// The device port: slabs of device memory that one process owns and others map. Shaped for CUDA's
// virtual memory management: a slab is the unit of sharing, tenancy and freeing; its size is a
// multiple of a granularity; exporting makes a descriptor, importing takes one; a mapping is whole.
// Nothing above this file knows which device it is: HostDevice (memfd) today, a driver later.
// Errors: a lost device is a value (device_lost), never a crash.
// Thread: a Device is used by one thread, except health() and create_mover(), which any may call;
// handles are move-only values that die before their Device.
// Not here: fences (timeline.h), checksums (checksum.h), who may have which slab (daemon).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/mover.h"
#include "proto/contract/unique_fd.h"

namespace memdecay::cuda {

using Fd = ::memdecay::UniqueFd;

enum class DeviceKind : uint8_t { kHost, kCuda };
enum class Access : uint8_t { kReadOnly, kReadWrite };

// What stops a process with a read-only slab from writing it.
enum class ReadOnlyGuard : uint8_t {
  kDescriptor,  // the descriptor cannot be mapped writable
  kMapping,     // only the importer's own mapping is read-only (CUDA): accidents, not malice
};

struct DeviceProperties {
  DeviceKind kind = DeviceKind::kHost;
  std::string uuid;                // never an ordinal
  uint64_t granularity_bytes = 0;  // slab sizes are multiples of it
  uint64_t limit_bytes = 0;        // all slabs together
  bool exclusive_writer_per_slab = true;
  ReadOnlyGuard read_only_guard = ReadOnlyGuard::kDescriptor;
};

// A range of this process's address space that shows a slab; unmapped when it goes. address() is a
// plain pointer on the host and a device pointer on a GPU: copy through a Mover, or ask host_bytes.
class Mapping {
 public:
  // Takes the mapping away again; `device` is whoever made it, and lives longer.
  using Unmap = void (*)(void* device, std::byte* address, uint64_t bytes);
  enum class Reach : uint8_t { kCpu, kDeviceOnly };

  Mapping() = default;
  Mapping(std::byte* address, uint64_t bytes, Access access, Reach reach, Unmap unmap,
          void* device = nullptr)
      : address_(address),
        bytes_(bytes),
        access_(access),
        reach_(reach),
        unmap_(unmap),
        device_(device) {}
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    if (this == &other) return *this;
    reset();
    address_ = std::exchange(other.address_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    access_ = other.access_;
    reach_ = other.reach_;
    unmap_ = other.unmap_;
    device_ = other.device_;
    return *this;
  }
  ~Mapping() { reset(); }

  void reset() {
    if (address_ != nullptr) unmap_(device_, address_, bytes_);
    address_ = nullptr;
    bytes_ = 0;
  }
  explicit operator bool() const { return address_ != nullptr; }
  std::byte* address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  Access access() const { return access_; }
  // What the CPU may read (and write, if the access says so); empty for device memory.
  std::span<std::byte> host_bytes() const {
    if (reach_ != Reach::kCpu) return {};
    return {address_, static_cast<size_t>(bytes_)};
  }

 private:
  std::byte* address_ = nullptr;
  uint64_t bytes_ = 0;
  Access access_ = Access::kReadOnly;
  Reach reach_ = Reach::kCpu;
  Unmap unmap_ = nullptr;
  void* device_ = nullptr;
};

// Owned device memory with the owner's own writable mapping. Its bytes go back to the device's
// limit when it goes; other processes' mappings of it live on.
class Slab {
 public:
  // Given back to the device that made it: `native` is the descriptor or the driver's handle.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void release_slab(uint64_t native, uint64_t bytes) = 0;
  };

  Slab() = default;
  Slab(Owner* owner, uint64_t native, Mapping mapping)
      : owner_(owner), native_(native), mapping_(std::move(mapping)) {}
  Slab(Slab&& other) noexcept { *this = std::move(other); }
  Slab& operator=(Slab&& other) noexcept {
    if (this == &other) return *this;
    reset();
    owner_ = std::exchange(other.owner_, nullptr);
    native_ = std::exchange(other.native_, 0);
    mapping_ = std::move(other.mapping_);
    return *this;
  }
  ~Slab() { reset(); }

  void reset() {
    const uint64_t released = mapping_.bytes();
    mapping_.reset();
    if (owner_ != nullptr) owner_->release_slab(native_, released);
    owner_ = nullptr;
    native_ = 0;
  }
  explicit operator bool() const { return owner_ != nullptr; }
  uint64_t bytes() const { return mapping_.bytes(); }
  std::byte* address() const { return mapping_.address(); }
  const Mapping& mapping() const { return mapping_; }
  uint64_t native() const { return native_; }

 private:
  Owner* owner_ = nullptr;
  uint64_t native_ = 0;
  Mapping mapping_;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceProperties& properties() const = 0;
  // Bytes in living slabs.
  virtual uint64_t used_bytes() const = 0;
  // ok, or device_lost for ever.
  virtual absl::Status health() const = 0;

  // Fresh memory, all zero, present (no later fault for want of memory). invalid_argument: zero or
  // no multiple of the granularity; resource_exhausted: the limit, or the machine has no more.
  virtual absl::StatusOr<Slab> create_slab(uint64_t bytes) = 0;
  // A new close-on-exec descriptor for another process; each call makes one, which the caller owns.
  virtual absl::StatusOr<Fd> export_slab(const Slab& slab, Access access) = 0;
  // Importing side: maps a descriptor of `bytes` bytes whole. invalid_argument: wrong size or no
  // descriptor of such a device; permission: the descriptor does not allow this access.
  virtual absl::StatusOr<Mapping> map(Fd descriptor, uint64_t bytes, Access access) = 0;
  // Zeroes [offset, offset + bytes) before a slot gets a new user. out_of_range. (A Mover's kZero
  // does the same asynchronously.)
  virtual absl::Status scrub(const Slab& slab, uint64_t offset, uint64_t bytes) = 0;

  // An asynchronous copy engine for this device. It must go before the device.
  virtual absl::StatusOr<std::unique_ptr<Mover>> create_mover(MoverOptions options,
                                                              MoverCallback completed) = 0;
};

}  // namespace memdecay::cuda
