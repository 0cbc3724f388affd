// Copier: carries copies between device slots and host replicas through one mover, and keeps what a
// copy uses alive until it has ended.
// A copy is started and finished on the owner's thread; in between the mover's thread moves bytes
// and calls `ended` exactly once (also for a copy that could not start or was cancelled in time).
// The owner then calls finish() with that outcome: only there a replica comes to be, a checksum is
// compared, memory is let go.
// Thread: the owner's (the reactor's); `ended` is called on the mover's or the owner's thread.
// Invariants: nothing that a copy reads or writes is freed before finish(); a cancelled copy never
// makes a replica.
// Not here: which copies there are, and that two on one slot do not overlap (ledger).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device.h"
#include "daemon/tiers/device_tier.h"
#include "daemon/tiers/host_tier.h"
#include "proto/contract/ids.h"

namespace memdecay::tiers {

enum class CopyDirection : uint8_t {
  kToHost,    // slot → replica
  kToDevice,  // replica → slot
  kVerify,    // the checksum of a slot; nothing is kept
};

struct CopyOrder {
  CopyId id;
  CopyDirection direction = CopyDirection::kToHost;
  ContentId content;
  SlabId slab;
  uint32_t index = 0;
  uint64_t bytes = 0;
};

struct CopyOutcome {
  CopyId id;
  absl::Status status;
  std::optional<Checksum> checksum;  // of the bytes that moved
};

struct CopyTotals {
  uint64_t to_host_bytes = 0;
  uint64_t to_device_bytes = 0;
};

class Copier {
 public:
  using Ended = std::function<void(const CopyOutcome&)>;
  // The tiers and the device outlive the copier.
  static absl::StatusOr<std::unique_ptr<Copier>> create(cuda::Device& device, DeviceTier& slabs,
                                                        HostTier& host, Ended ended);
  // Waits for the copy that runs; drops the others unanswered.
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  void start(const CopyOrder& order);
  void cancel(CopyId id);
  // A replica of this content that is being written will not come to be.
  void unwanted(ContentId content);
  // Outcomes of copies that never started pass through unchanged.
  CopyOutcome finish(CopyOutcome outcome);

  size_t in_flight() const { return copies_.size(); }
  const CopyTotals& totals() const { return totals_; }

 private:
  struct Copy {
    CopyOrder order;
    HostTier::Record record;         // kToHost: reserved; kToDevice: being read
    std::vector<std::byte> scratch;  // kVerify: the mover needs somewhere to copy to
    enum class Wanted : uint8_t { kYes, kNo } wanted = Wanted::kYes;
  };

  Copier(DeviceTier& slabs, HostTier& host, Ended ended)
      : slabs_(slabs), host_(host), ended_(std::move(ended)) {}
  absl::StatusOr<cuda::MoveRequest> prepare(Copy& copy);
  absl::Status finish_to_device(const Copy& copy, const CopyOutcome& outcome);
  void let_go(const Copy& copy);

  DeviceTier& slabs_;
  HostTier& host_;
  const Ended ended_;
  absl::flat_hash_map<CopyId, std::unique_ptr<Copy>> copies_;
  CopyTotals totals_;
  std::unique_ptr<cuda::Mover> mover_;  // last: its thread may call `ended`
};

}  // namespace memdecay::tiers
