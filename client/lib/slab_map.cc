// SlabMap: two views of each slab and the protection of its slots.
// Thread: any; see slab_map.h.
#include "client/lib/slab_map.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lib/limits.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::client {
namespace {

uint64_t machine_page() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

absl::Status check_shape(const SlabFd& slab) {
  const bool sane = slab.slab && slab.page_bytes > 0 && slab.slots > 0 && slab.bytes > 0 &&
                    slab.slots <= slab.bytes / slab.page_bytes;
  if (sane) return absl::OkStatus();
  return make_error(ErrorCode::kInvalidArgument,
                    absl::StrCat("slab ", slab.slab.value, " of ", slab.bytes, " bytes"),
                    absl::StrCat(slab.slots, " slots of ", slab.page_bytes, " bytes"),
                    "the daemon sent a frame that contradicts itself: update both to one version");
}

}  // namespace

absl::Status SlabMap::add(const SlabFd& slab, UniqueFd descriptor) {
  if (absl::Status status = check_shape(slab); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  if (!slabs_.contains(slab.slab) && slabs_.size() >= kMaxSlabs) {
    return make_error(ErrorCode::kResourceExhausted, absl::StrCat("slab ", slab.slab.value),
                      absl::StrCat(slabs_.size(), " slabs are mapped"), "use bigger slabs");
  }
  UniqueFd second(slab.access == SlabAccess::kWritable ? ::dup(descriptor.get()) : -1);
  Mapped& mapped = slabs_[slab.slab];
  const bool known = static_cast<bool>(mapped.read);
  if (!known) {
    auto read = device_->map(std::move(descriptor), slab.bytes, cuda::Access::kReadOnly);
    if (!read.ok()) {
      slabs_.erase(slab.slab);
      return read.status();
    }
    mapped.read = *std::move(read);
    mapped.shape = slab;
    mapped.open.assign(static_cast<size_t>(slab.bytes / machine_page() + 1), 0);
  }
  if (slab.access == SlabAccess::kReadOnly) {
    mapped.write.reset();
  } else if (!mapped.write) {
    auto write = device_->map(std::move(second), mapped.shape.bytes, cuda::Access::kReadWrite);
    if (!write.ok()) return write.status();
    mapped.write = *std::move(write);
    if (!mapped.write.host_bytes().empty()) {
      ::mprotect(mapped.write.address(), static_cast<size_t>(mapped.shape.bytes), PROT_NONE);
    }
  }
  return absl::OkStatus();
}

void SlabMap::remove(SlabId slab) {
  absl::MutexLock lock(&mutex_);
  slabs_.erase(slab);
}

bool SlabMap::has(SlabId slab) const {
  absl::MutexLock lock(&mutex_);
  return slabs_.contains(slab);
}

void SlabMap::retire_all() {
  absl::MutexLock lock(&mutex_);
  for (auto& [slab, mapped] : slabs_) retired_.push_back(std::move(mapped));
  slabs_.clear();
}

void SlabMap::drop_retired() {
  absl::MutexLock lock(&mutex_);
  retired_.clear();
}

std::optional<SlotAddress> SlabMap::find(SlabId slab, uint32_t index) const {
  absl::MutexLock lock(&mutex_);
  const auto found = slabs_.find(slab);
  if (found == slabs_.end() || index >= found->second.shape.slots) return std::nullopt;
  const Mapped& mapped = found->second;
  const uint64_t at = index * mapped.shape.page_bytes;
  return SlotAddress{mapped.read.address() + at,
                     mapped.write ? mapped.write.address() + at : nullptr, mapped.shape.page_bytes};
}

std::optional<SlotAddress> SlabMap::open_locked(SlabId slab, uint32_t index) {
  const auto found = slabs_.find(slab);
  if (found == slabs_.end() || index >= found->second.shape.slots) return std::nullopt;
  Mapped& mapped = found->second;
  if (!mapped.write) return std::nullopt;
  protect(mapped, index, +1);
  const uint64_t at = index * mapped.shape.page_bytes;
  return SlotAddress{mapped.read.address() + at, mapped.write.address() + at,
                     mapped.shape.page_bytes};
}

std::optional<SlotAddress> SlabMap::open_slot(SlabId slab, uint32_t index) {
  std::optional<SlotAddress> opened;
  {
    absl::MutexLock lock(&mutex_);
    opened = open_locked(slab, index);
  }
  // Outside the lock: the slot is nobody else's, and a page takes tens of microseconds.
  if (opened) std::memset(opened->write, 0, static_cast<size_t>(opened->bytes));
  return opened;
}

std::optional<SlotAddress> SlabMap::reopen_slot(SlabId slab, uint32_t index) {
  absl::MutexLock lock(&mutex_);
  return open_locked(slab, index);
}

void SlabMap::close_slot(SlabId slab, uint32_t index) {
  absl::MutexLock lock(&mutex_);
  const auto found = slabs_.find(slab);
  if (found == slabs_.end() || !found->second.write) return;
  if (index < found->second.shape.slots) protect(found->second, index, -1);
}

// Runs of machine pages whose count leaves or reaches zero change protection in one call each.
void SlabMap::protect(Mapped& mapped, uint32_t index, int change) {
  if (mapped.write.host_bytes().empty()) return;
  const uint64_t page = machine_page();
  const uint64_t begin = index * mapped.shape.page_bytes;
  const auto first = static_cast<size_t>(begin / page);
  const auto last = static_cast<size_t>((begin + mapped.shape.page_bytes - 1) / page);
  const int protection = change > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
  size_t run = first;  // [run, i): pages that change
  for (size_t i = first; i <= last; ++i) {
    const bool changes = change > 0 ? mapped.open[i] == 0 : mapped.open[i] == 1;
    MEMDECAY_CHECK(change > 0 || mapped.open[i] > 0);
    mapped.open[i] = static_cast<uint16_t>(mapped.open[i] + change);
    const bool flush_before = !changes && run < i;
    if (flush_before) ::mprotect(mapped.write.address() + run * page, (i - run) * page, protection);
    if (!changes) run = i + 1;
  }
  if (run <= last) {
    ::mprotect(mapped.write.address() + run * page, (last + 1 - run) * page, protection);
  }
}

}  // namespace memdecay::client
