// A slab of a real host device, as a client would receive it.
// Thread: the test's. Not here: sockets.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "client/lib/slab_map.h"
#include "cuda/host_device.h"

namespace memdecay::client {

class SlabsForTest {
 public:
  explicit SlabsForTest(uint64_t page_bytes) : page_bytes_(page_bytes) {
    owner_ = *cuda::create_host_device({.limit_bytes = uint64_t{1} << 24});
  }

  // Sends a slab of `slots` pages to `map`; the number counts from 1.
  SlabId send(SlabMap& map, uint32_t slots, SlabAccess access) {
    const uint64_t granularity = owner_->properties().granularity_bytes;
    const uint64_t bytes = (slots * page_bytes_ + granularity - 1) / granularity * granularity;
    slabs_.push_back(*owner_->create_slab(bytes));
    const SlabId id{static_cast<uint32_t>(slabs_.size())};
    send_again(map, id, slots, access);
    return id;
  }
  void send_again(SlabMap& map, SlabId id, uint32_t slots, SlabAccess access) {
    const cuda::Slab& slab = slabs_[id.value - 1];
    auto fd = owner_->export_slab(
        slab, access == SlabAccess::kWritable ? cuda::Access::kReadWrite : cuda::Access::kReadOnly);
    const absl::Status status = map.add({.slab = id,
                                         .bytes = slab.bytes(),
                                         .page_bytes = page_bytes_,
                                         .slots = slots,
                                         .access = access},
                                        *std::move(fd));
    ASSERT_TRUE(status.ok()) << status;
  }
  std::byte* bytes(SlabId id) { return slabs_[id.value - 1].address(); }

 private:
  uint64_t page_bytes_;
  std::unique_ptr<cuda::Device> owner_;
  std::vector<cuda::Slab> slabs_;
};

inline std::unique_ptr<SlabMap> empty_slab_map() {
  return std::make_unique<SlabMap>(*cuda::create_host_device({}));
}

}  // namespace memdecay::client
