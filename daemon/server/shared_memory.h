// What the edges need of memory: descriptors of slabs and of the shadow table, timeline pages of
// engine members. A port, so that the edges know neither devices nor tiers.
// Thread: named at each function. Errors: as the tiers give them.
// Not here: which engine may have what (ledger), sending descriptors (handle_server.h).
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/contract/handle_frames.h"
#include "proto/contract/ids.h"
#include "proto/contract/unique_fd.h"

namespace memdecay::server {

struct SlabHandle {
  SlabFd frame;
  UniqueFd descriptor;
};
struct ShadowHandle {
  ShadowFd frame;
  UniqueFd descriptor;
};

class SharedMemory {
 public:
  virtual ~SharedMemory() = default;

  // ---- the reactor's thread ----
  virtual absl::StatusOr<SlabHandle> export_slab(SlabId slab, SlabAccess access) = 0;
  virtual absl::StatusOr<ShadowHandle> export_shadow(TenantId tenant) = 0;
  // Reports every fence of the engine that has passed, now, and forgets its timeline pages.
  virtual void last_look(EngineId engine) = 0;

  // ---- any thread ----
  // The timeline page of a member; made at the first call, the same page afterwards.
  virtual absl::StatusOr<UniqueFd> timeline(EngineId engine, uint32_t member) = 0;
};

}  // namespace memdecay::server
