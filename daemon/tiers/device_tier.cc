// See device_tier.h.
#include "daemon/tiers/device_tier.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/limits.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"
#include "proto/contract/layout.h"

namespace memdecay::tiers {
namespace {

absl::Status unknown(SlabId slab) {
  return make_error(ErrorCode::kNotFound, absl::StrCat("slab ", slab.value), "no such slab");
}

}  // namespace

absl::Status DeviceTier::create(SlabId slab, const SlabShape& shape) {
  const std::string asked = absl::StrCat("slab ", slab.value, " of ", shape.pages, " pages of ",
                                         shape.page_bytes, " bytes");
  if (shape.pages == 0 || shape.pages > base::limits::kPagesASlab || shape.page_bytes == 0 ||
      shape.page_bytes > kMaxPageBytes || slabs_.contains(slab)) {
    return make_error(ErrorCode::kInvalidArgument, asked, "not a shape, or the id is taken");
  }
  const uint64_t granularity = device_.properties().granularity_bytes;
  const uint64_t wanted = shape.pages * shape.page_bytes;
  const uint64_t bytes = (wanted + granularity - 1) / granularity * granularity;
  absl::StatusOr<cuda::Slab> memory = device_.create_slab(bytes);
  if (!memory.ok()) return memory.status();
  slabs_.emplace(slab, Entry{.memory = *std::move(memory), .shape = shape});
  return absl::OkStatus();
}

void DeviceTier::destroy(SlabId slab) {
  const auto at = slabs_.find(slab);
  if (at == slabs_.end()) return;
  at->second.life = Entry::Life::kDestroyed;
  if (at->second.copies == 0) slabs_.erase(at);
}

absl::StatusOr<SlabExport> DeviceTier::export_slab(SlabId slab, cuda::Access access) {
  const auto at = slabs_.find(slab);
  if (at == slabs_.end() || at->second.life == Entry::Life::kDestroyed) return unknown(slab);
  absl::StatusOr<cuda::Fd> descriptor = device_.export_slab(at->second.memory, access);
  if (!descriptor.ok()) return descriptor.status();
  return SlabExport{*std::move(descriptor), at->second.shape, at->second.memory.bytes()};
}

absl::StatusOr<std::byte*> DeviceTier::address(SlabId slab, uint32_t index) const {
  const auto at = slabs_.find(slab);
  if (at == slabs_.end()) return unknown(slab);
  if (index >= at->second.shape.pages) {
    return make_error(ErrorCode::kOutOfRange, absl::StrCat("slot ", slab.value, "/", index),
                      absl::StrCat("the slab has ", at->second.shape.pages));
  }
  return at->second.memory.address() + index * at->second.shape.page_bytes;
}

void DeviceTier::hold(SlabId slab) {
  const auto at = slabs_.find(slab);
  MEMDECAY_CHECK(at != slabs_.end());
  ++at->second.copies;
}

void DeviceTier::release(SlabId slab) {
  const auto at = slabs_.find(slab);
  MEMDECAY_CHECK(at != slabs_.end() && at->second.copies > 0);
  --at->second.copies;
  if (at->second.copies == 0 && at->second.life == Entry::Life::kDestroyed) slabs_.erase(at);
}

absl::Status DeviceTier::scrub(SlabId slab, uint32_t index) {
  const auto at = slabs_.find(slab);
  if (at == slabs_.end()) return unknown(slab);
  const uint64_t page_bytes = at->second.shape.page_bytes;
  return device_.scrub(at->second.memory, index * page_bytes, page_bytes);
}

absl::StatusOr<SlabShape> DeviceTier::shape(SlabId slab) const {
  const auto at = slabs_.find(slab);
  if (at == slabs_.end()) return unknown(slab);
  return at->second.shape;
}

}  // namespace memdecay::tiers
