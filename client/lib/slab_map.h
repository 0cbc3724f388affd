// SlabMap: the daemon's slabs in this process's address space. A slab that the daemon lets us write
// is mapped twice: once read-only, for all readers, and once as a writable view in which every page
// of memory is PROT_NONE until open_slot() and again after close_slot(). So a stray write into a
// sealed page is a fault here, not wrong bytes in somebody's answer.
// Protection is by the machine's page: slots that share one (page_bytes no multiple of 4096) stay
// writable together. Mappings are not inherited by forks.
// Thread: any; one private leaf mutex. Addresses stay valid until remove(), which the caller does
// only when nobody uses the slab. Not here: who may write what, and when (page_table.h, daemon).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "cuda/device.h"
#include "proto/contract/handle_frames.h"
#include "proto/contract/ids.h"
#include "proto/contract/unique_fd.h"

namespace memdecay::client {

struct SlotAddress {
  const std::byte* read = nullptr;
  std::byte* write = nullptr;  // null: this process may not write the slab
  uint64_t bytes = 0;
};

class SlabMap {
 public:
  explicit SlabMap(std::unique_ptr<cuda::Device> device) : device_(std::move(device)) {}

  // Maps a received descriptor. A slab that is there already keeps its addresses; its writable view
  // comes or goes with the new access. invalid_argument: sizes that contradict each other.
  absl::Status add(const SlabFd& slab, UniqueFd descriptor);
  void remove(SlabId slab);
  bool has(SlabId slab) const;
  // The daemon that named them is gone: slabs lose their names, so that another daemon's take their
  // place; addresses stay valid until drop_retired().
  void retire_all();
  void drop_retired();

  // Nothing: the slab has not arrived (yet), or has no such slot.
  std::optional<SlotAddress> find(SlabId slab, uint32_t index) const;
  // Makes the slot writable and zeroes it. Nothing: not there, or not ours to write.
  std::optional<SlotAddress> open_slot(SlabId slab, uint32_t index);
  // Makes an open slot writable again without touching its bytes (a refused seal).
  std::optional<SlotAddress> reopen_slot(SlabId slab, uint32_t index);
  // No write reaches the slot from here on. Each open or reopen is closed once.
  void close_slot(SlabId slab, uint32_t index);

 private:
  struct Mapped {
    SlabFd shape;
    cuda::Mapping read;
    cuda::Mapping write;
    std::vector<uint16_t> open;  // per machine page: open slots that lie in it
  };

  std::optional<SlotAddress> open_locked(SlabId slab, uint32_t index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void protect(Mapped& mapped, uint32_t index, int change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::unique_ptr<cuda::Device> device_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<SlabId, Mapped> slabs_ ABSL_GUARDED_BY(mutex_);
  std::vector<Mapped> retired_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace memdecay::client
