// See real_shared_memory.h.
#include "daemon/server/real_shared_memory.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "proto/contract/error.h"

namespace memdecay::server {

absl::StatusOr<SlabHandle> RealSharedMemory::export_slab(SlabId slab, SlabAccess access) {
  using Access = ledger::ShareSlab::Access;
  absl::StatusOr<tiers::SlabExport> exported = bytes_.export_slab(
      slab, access == SlabAccess::kWritable ? Access::kReadWrite : Access::kReadOnly);
  if (!exported.ok()) return exported.status();
  return SlabHandle{.frame = {.slab = slab,
                              .bytes = exported->bytes,
                              .page_bytes = exported->shape.page_bytes,
                              .slots = exported->shape.pages,
                              .access = access},
                    .descriptor = std::move(exported->descriptor)};
}

absl::StatusOr<ShadowHandle> RealSharedMemory::export_shadow(TenantId tenant) {
  absl::StatusOr<UniqueFd> shadow = bytes_.share_shadow(tenant);
  if (!shadow.ok()) return shadow.status();
  return ShadowHandle{.frame = {.bytes = shadow_bytes_}, .descriptor = *std::move(shadow)};
}

void RealSharedMemory::last_look(EngineId engine) {
  fences_.engine_gone(engine);
  const absl::MutexLock lock(&mutex_);
  pages_.erase(pages_.lower_bound({engine, 0}), pages_.upper_bound({engine, UINT32_MAX}));
}

absl::StatusOr<UniqueFd> RealSharedMemory::timeline(EngineId engine, uint32_t member) {
  const absl::MutexLock lock(&mutex_);
  const auto known = pages_.find({engine, member});
  if (known != pages_.end()) {
    UniqueFd copy(::fcntl(known->second.get(), F_DUPFD_CLOEXEC, 0));
    if (copy) return copy;
    return make_error(ErrorCode::kResourceExhausted, "copy a timeline's descriptor",
                      std::strerror(errno), "raise the limit of open files");
  }
  absl::StatusOr<cuda::Timeline> page = cuda::Timeline::create();
  if (!page.ok()) return page.status();
  absl::StatusOr<UniqueFd> kept = page->share();
  if (!kept.ok()) return kept.status();
  absl::StatusOr<UniqueFd> sent = page->share();
  if (!sent.ok()) return sent.status();
  fences_.add_member(engine, member, *std::move(page));
  pages_.emplace(std::pair(engine, member), *std::move(kept));
  return sent;
}

}  // namespace memdecay::server
