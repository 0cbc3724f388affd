// What the driver lets a process do with memory: without a context, in parts, read-only, again.
#include <fcntl.h>

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cuda/blocking_mover.h"
#include "cuda/driver/context.h"
#include "cuda/driver/slab_handle.h"
#include "tests/gpu/checks.h"

namespace memdecay::gpu {
namespace {

using cuda::Gpu;
using cuda::SlabHandle;

constexpr uint64_t kSlabBytes = uint64_t{64} << 20;

absl::Status attributes(const Target& target, Json& report) {
  const auto opened = target.open();
  if (!opened.ok()) return opened.status();
  const Gpu& gpu = **opened;
  report["name"] = gpu.name();
  report["uuid"] = gpu.uuid();
  report["driver_cuda_version"] = gpu.api().version;
  const std::map<std::string, CUdevice_attribute> wanted = {
      {"compute_mode", CU_DEVICE_ATTRIBUTE_COMPUTE_MODE},
      {"compute_major", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {"compute_minor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {"copy_engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
      {"virtual_memory_management", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
      {"posix_descriptors", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
      {"stream_values_64_bit", CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS},
      {"mps", CU_DEVICE_ATTRIBUTE_MPS_ENABLED}};
  for (const auto& [name, attribute] : wanted) {
    int value = 0;
    const absl::Status asked =
        gpu.call(gpu.api().device_get_attribute, &value, attribute, gpu.device());
    report[name] = asked.ok() ? Json(value) : Json(word_of(asked));
  }
  size_t total = 0;
  if (gpu.call(gpu.api().device_total_mem, &total, gpu.device()).ok()) report["memory"] = total;
  const CUmemAllocationProp properties = cuda::slab_properties(gpu.device());
  for (const auto& [name, which] :
       {std::pair{"granularity_least", CU_MEM_ALLOC_GRANULARITY_MINIMUM},
        std::pair{"granularity_recommended", CU_MEM_ALLOC_GRANULARITY_RECOMMENDED}}) {
    size_t granularity = 0;
    const absl::Status asked =
        gpu.call(gpu.api().mem_get_granularity, &granularity, &properties, which);
    report[name] = asked.ok() ? Json(granularity) : Json(word_of(asked));
  }
  return absl::OkStatus();
}

// One allocation with a second handle of it, as an importer would have it, and room for both.
struct Shared {
  SlabHandle owned;
  SlabHandle imported;
  int descriptor_flags = 0;
  CUdeviceptr room = 0;  // 2 * kSlabBytes
};

absl::StatusOr<Shared> share(const Gpu& gpu) {
  absl::StatusOr<SlabHandle> owned = cuda::create_handle(gpu, kSlabBytes);
  if (!owned.ok()) return owned.status();
  int fd = -1;
  absl::Status exported = gpu.call(gpu.api().mem_export, static_cast<void*>(&fd), owned->native(),
                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ull);
  if (!exported.ok()) return exported;
  const cuda::Fd descriptor(fd);
  const int flags = ::fcntl(fd, F_GETFD);
  absl::StatusOr<SlabHandle> imported = cuda::import_handle(gpu, descriptor);
  if (!imported.ok()) return imported.status();
  CUdeviceptr room = 0;
  absl::Status reserved = gpu.call(gpu.api().mem_address_reserve, &room, size_t{2 * kSlabBytes},
                                   size_t{0}, CUdeviceptr{0}, 0ull);
  if (!reserved.ok()) return reserved;
  return Shared{*std::move(owned), *std::move(imported), flags, room};
}

absl::Status map_at(const Gpu& gpu, CUdeviceptr at, const SlabHandle& handle, uint64_t bytes) {
  return gpu.call(gpu.api().mem_map, at, size_t{bytes}, size_t{0}, handle.native(), 0ull);
}

absl::Status allow(const Gpu& gpu, CUdeviceptr at, CUmemAccess_flags flags) {
  CUmemAccessDesc wanted{};
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = gpu.device();
  wanted.flags = flags;
  return gpu.call(gpu.api().mem_set_access, at, size_t{kSlabBytes},
                  static_cast<const CUmemAccessDesc*>(&wanted), size_t{1});
}

absl::Status unmap(const Gpu& gpu, CUdeviceptr at, uint64_t bytes) {
  return gpu.call(gpu.api().mem_unmap, at, size_t{bytes});
}

absl::Status owner(const Target& target, Json& report) {
  const auto gpu = target.open();
  if (!gpu.ok()) return gpu.status();
  const absl::StatusOr<Shared> shared = share(**gpu);
  report["create_export_import_reserve"] = word_of(shared.status());
  if (!shared.ok()) return absl::OkStatus();
  report["close_on_exec"] = (shared->descriptor_flags & FD_CLOEXEC) != 0;
  report["map"] = word_of(map_at(**gpu, shared->room, shared->imported, kSlabBytes));
  report["access"] = word_of(allow(**gpu, shared->room, CU_MEM_ACCESS_FLAGS_PROT_READ));
  report["unmap"] = word_of(unmap(**gpu, shared->room, kSlabBytes));
  return absl::OkStatus();
}

absl::Status whole(const Target& target, Json& report) {
  const auto gpu = target.open();
  if (!gpu.ok()) return gpu.status();
  const absl::StatusOr<Shared> shared = share(**gpu);
  if (!shared.ok()) return shared.status();
  const absl::Status half = map_at(**gpu, shared->room, shared->imported, kSlabBytes / 2);
  report["map_half"] = word_of(half);
  if (half.ok()) unmap(**gpu, shared->room, kSlabBytes / 2).IgnoreError();
  report["map_double"] = word_of(map_at(**gpu, shared->room, shared->imported, 2 * kSlabBytes));
  if (absl::Status all = map_at(**gpu, shared->room, shared->imported, kSlabBytes); !all.ok()) {
    return all;
  }
  report["unmap_half"] = word_of(unmap(**gpu, shared->room, kSlabBytes / 2));
  report["unmap_whole"] = word_of(unmap(**gpu, shared->room, kSlabBytes));
  return absl::OkStatus();
}

// Fills a slab, frees it, takes another, and counts what is not zero in it before it is cleared.
absl::Status fresh(const Target& target, Json& report) {
  const auto opened = target.open();
  if (!opened.ok()) return opened.status();
  const Gpu& gpu = **opened;
  cuda::Context context(gpu);
  if (absl::Status status = context.begin(); !status.ok()) return status;
  const auto device = target.device(0);
  if (!device.ok()) return device.status();
  cuda::BlockingMover mover([&](cuda::MoverOptions options, cuda::MoverCallback completed) {
    return (*device)->create_mover(options, std::move(completed));
  });
  CUdeviceptr room = 0;
  if (absl::Status status = gpu.call(gpu.api().mem_address_reserve, &room, size_t{kSlabBytes},
                                     size_t{0}, CUdeviceptr{0}, 0ull);
      !status.ok()) {
    return status;
  }
  auto* const at = reinterpret_cast<std::byte*>(room);
  std::vector<std::byte> bytes(kSlabBytes);
  for (int round = 0; round < 2; ++round) {
    const absl::StatusOr<SlabHandle> handle = cuda::create_handle(gpu, kSlabBytes);
    if (!handle.ok()) return handle.status();
    if (absl::Status status = map_at(gpu, room, *handle, kSlabBytes); !status.ok()) return status;
    if (absl::Status status = allow(gpu, room, CU_MEM_ACCESS_FLAGS_PROT_READWRITE); !status.ok()) {
      return status;
    }
    const auto read = mover.run({.from = at, .to = bytes.data(), .bytes = kSlabBytes});
    if (!read.status.ok()) return read.status;
    report[round == 0 ? "not_zero_first" : "not_zero_again"] =
        std::count_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
    std::fill(bytes.begin(), bytes.end(), std::byte{0x5a});
    const auto wrote = mover.run({.from = bytes.data(), .to = at, .bytes = kSlabBytes});
    if (!wrote.status.ok()) return wrote.status;
    if (absl::Status status = unmap(gpu, room, kSlabBytes); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status readonly(const Target& target, Json& report) {
  const auto owner = target.device(kSlabBytes);
  const auto importer = target.device(0);
  if (!owner.ok()) return owner.status();
  if (!importer.ok()) return importer.status();
  const auto slab = (*owner)->create_slab(kSlabBytes);
  if (!slab.ok()) return slab.status();
  auto descriptor = (*owner)->export_slab(*slab, cuda::Access::kReadOnly);
  if (!descriptor.ok()) return descriptor.status();
  const auto mapping =
      (*importer)->map(*std::move(descriptor), kSlabBytes, cuda::Access::kReadOnly);
  if (!mapping.ok()) return mapping.status();
  cuda::BlockingMover mover([&](cuda::MoverOptions options, cuda::MoverCallback completed) {
    return (*importer)->create_mover(options, std::move(completed));
  });
  report["write"] = word_of(mover.zero(mapping->address(), 4096));
  report["health_after"] = word_of((*importer)->health());
  std::vector<std::byte> byte(1);
  report["read_after"] =
      word_of(mover.run({.from = slab->address(), .to = byte.data(), .bytes = 1}).status);
  report["create_after"] = word_of((*owner)->create_slab(kSlabBytes).status());
  return absl::OkStatus();
}

}  // namespace

std::vector<Check> memory_checks() {
  return {
      {"attributes", "what this device and driver are", attributes},
      {"owner", "do create, export, import, reserve and map work without a context", owner},
      {"whole", "can a part of an allocation be mapped, or of a mapping be unmapped", whole},
      {"fresh", "does a new allocation hold old bytes", fresh},
      {"readonly", "what happens to a write through a read-only mapping, and after it", readonly},
  };
}

}  // namespace memdecay::gpu
