// DeviceTier: the slabs of one device. Makes and destroys them, hands out descriptors, knows the
// address of a slot. Tells nobody who may have a slot: that is decided elsewhere.
// Thread: one owner (the reactor's). Invariants: a destroyed slab lives on while a copy holds it;
// slots do not overlap and lie whole inside their slab.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device.h"
#include "proto/contract/ids.h"

namespace memdecay::tiers {

struct SlabShape {
  uint64_t page_bytes = 0;
  uint32_t pages = 0;
};

// What another process needs to map a slab.
struct SlabExport {
  cuda::Fd descriptor;
  SlabShape shape;
  uint64_t bytes = 0;  // of the whole slab: pages, rounded up to the device's granularity
};

class DeviceTier {
 public:
  // The device outlives the tier.
  explicit DeviceTier(cuda::Device& device) : device_(device) {}
  DeviceTier(const DeviceTier&) = delete;
  DeviceTier& operator=(const DeviceTier&) = delete;

  // invalid_argument: a shape without bytes or beyond the limits, an id that is taken;
  // resource_exhausted: the device's limit or the machine.
  absl::Status create(SlabId slab, const SlabShape& shape);
  // At once, or when its last copy has ended. Unknown ids (it could not be made) are ignored.
  void destroy(SlabId slab);
  // not_found: unknown or destroyed.
  absl::StatusOr<SlabExport> export_slab(SlabId slab, cuda::Access access);

  // not_found, out_of_range. Valid while the slab is held or not destroyed.
  absl::StatusOr<std::byte*> address(SlabId slab, uint32_t index) const;
  // A copy begins and ends on a slab. Checked: it exists; calls pair.
  void hold(SlabId slab);
  void release(SlabId slab);
  // Zeroes one slot.
  absl::Status scrub(SlabId slab, uint32_t index);

  // not_found.
  absl::StatusOr<SlabShape> shape(SlabId slab) const;
  uint64_t used_bytes() const { return device_.used_bytes(); }
  size_t slabs() const { return slabs_.size(); }

 private:
  struct Entry {
    cuda::Slab memory;
    SlabShape shape;
    uint32_t copies = 0;
    enum class Life : uint8_t { kAlive, kDestroyed } life = Life::kAlive;
  };

  cuda::Device& device_;
  absl::flat_hash_map<SlabId, Entry> slabs_;
};

}  // namespace memdecay::tiers
