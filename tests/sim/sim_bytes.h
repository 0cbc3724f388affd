// SimBytes: device slabs and host replicas as plain byte vectors behind the reactor's Bytes port.
// Copies really move the bytes, at their start or their end as the seed says (both are legal), and
// complete when the world picks them; a replica exists once the reactor has seen its completion.
// Engines read and write slots through mappings that know read-only from writable. Thread: the
// simulation's one. Invariants: a slab lives as long as the daemon or an engine has it; bytes
// behind the last slot never change (checked when a slab goes). Not here: which copy is held or
// lost (tests/support/copy_gate), when one completes (sim_world).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/random.h"
#include "daemon/ledger/effects.h"
#include "daemon/ledger/events.h"
#include "daemon/reactor/ports.h"

namespace memdecay::sim {

using PageBytes = std::vector<std::byte>;
using Access = ledger::ShareSlab::Access;

class SimBytes final : public reactor::Bytes {
 public:
  using Complete = std::function<void(ledger::Event)>;
  SimBytes(uint64_t seed, Complete complete);

  // ---- as an engine: not_found without a mapping or slab, permission, out_of_range -------------
  // What the scripted engine does on share_slab; a later kReadWrite supersedes kReadOnly.
  absl::Status map(EngineId engine, SlabId slab, Access access);
  void unmap(EngineId engine, SlabId slab);
  void unmap_all(EngineId engine);  // the process is gone
  absl::Status write(EngineId engine, const SlotRef& slot, uint64_t offset,
                     std::span<const std::byte> bytes);
  absl::StatusOr<PageBytes> read(EngineId engine, const SlotRef& slot) const;
  std::optional<Access> mapping(EngineId engine, SlabId slab) const;
  size_t mappings(EngineId engine) const;

  // ---- as the machine --------------------------------------------------------------------------
  std::optional<PageBytes> slot_bytes(const SlotRef& slot) const;
  std::optional<PageBytes> host_bytes(ContentId content) const;
  size_t slabs() const { return slabs_.size(); }
  size_t host_replicas() const { return host_.size(); }
  std::vector<ContentId> host_contents() const;
  // Damage a host replica; false: there is none.
  bool flip_host(ContentId content, uint64_t bit);
  bool zero_host(ContentId content);
  bool unlink_host(ContentId content);
  // A stray write into a slot (canaries).
  void scribble(const SlotRef& slot);

  // ---- as the scheduler
  // -------------------------------------------------------------------------- Copies that have
  // started and not completed, oldest first.
  std::vector<ledger::StartCopy> in_flight() const;
  // Ends the copy at this place of in_flight().
  void complete_copy(size_t place);

  // ---- the reactor's port
  // --------------------------------------------------------------------------
  absl::Status create_slab(const ledger::CreateSlab& slab) override;
  void destroy_slab(SlabId slab) override;
  void start_copy(const ledger::StartCopy& copy) override;
  void cancel_copy(CopyId copy) override;
  std::optional<ledger::CopyDone> finish_copy(ledger::CopyDone done) override;
  void drop_host(ContentId content) override;
  void shadow_row(const ledger::ShadowRow& row) override;

 private:
  struct Slab {
    uint64_t page_bytes = 0;
    uint32_t pages = 0;
    PageBytes bytes;
    enum class Owner : uint8_t { kDaemon, kGone } owner = Owner::kDaemon;
    std::map<EngineId, Access> mappings;
  };
  struct Replica {
    PageBytes bytes;
    Checksum checksum;
  };
  struct Copy {
    ledger::StartCopy what;
    enum class Moves : uint8_t { kAtStart, kAtEnd, kNever } moves = Moves::kAtEnd;
    enum class Wanted : uint8_t { kYes, kNo } wanted = Wanted::kYes;  // no: cancelled or dropped
    std::optional<Replica> replica;  // kRestore: what was there at the start; else what was taken
    ledger::CopyDone outcome;        // once moved
  };

  // The bytes of a slot; empty if there is no such slot.
  std::span<std::byte> place(const SlotRef& slot);
  std::span<const std::byte> place(const SlotRef& slot) const;
  void move(Copy& copy);
  std::vector<Copy*> unfinished();
  void forget_if_unused(SlabId slab);

  base::Random random_;
  Complete complete_;
  std::map<SlabId, Slab> slabs_;
  std::map<ContentId, Replica> host_;
  std::vector<Copy> in_flight_;
  std::map<CopyId, Copy> ended_;  // completed, the reactor has not come to it yet
};

}  // namespace memdecay::sim
