// The SharedMemory port on the real tiers: slabs and shadow tables of RealBytes, timeline pages
// watched by RealFences.
// Thread: as shared_memory.h says.
#pragma once

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/reactor/real_bytes.h"
#include "daemon/reactor/real_fences.h"
#include "daemon/server/shared_memory.h"

namespace memdecay::server {

class RealSharedMemory final : public SharedMemory {
 public:
  // `shadow_bytes`: size of every shadow table. Both outlive it.
  RealSharedMemory(reactor::RealBytes& bytes, reactor::RealFences& fences, uint64_t shadow_bytes)
      : bytes_(bytes), fences_(fences), shadow_bytes_(shadow_bytes) {}

  absl::StatusOr<SlabHandle> export_slab(SlabId slab, SlabAccess access) override;
  absl::StatusOr<ShadowHandle> export_shadow(TenantId tenant) override;
  void last_look(EngineId engine) override;
  absl::StatusOr<UniqueFd> timeline(EngineId engine, uint32_t member) override;

 private:
  reactor::RealBytes& bytes_;
  reactor::RealFences& fences_;
  const uint64_t shadow_bytes_;
  absl::Mutex mutex_;
  // A descriptor of each page, to be handed out again to a member that comes back.
  std::map<std::pair<EngineId, uint32_t>, UniqueFd> pages_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace memdecay::server
