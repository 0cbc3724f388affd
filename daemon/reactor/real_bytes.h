// RealBytes: the reactor's Bytes port on a device, a host tier and a mover. It translates the
// ledger's effects into the tiers' words and back; it decides nothing.
// Besides the port it answers what the edges need: descriptors of slabs and shadow tables, totals
// for metrics, damage for the lab.
// Thread: the reactor's, all of it; `complete` is called on the mover's thread too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/device.h"
#include "daemon/reactor/ports.h"
#include "daemon/tiers/copier.h"
#include "daemon/tiers/device_tier.h"
#include "daemon/tiers/host_tier.h"
#include "daemon/tiers/shadow_file.h"

namespace memdecay::reactor {

struct RealBytesOptions {
  tiers::HostTierOptions host;
  uint32_t shadow_records = 1024;  // slots that a tenant's shadow table can tell of
};

class RealBytes final : public Bytes {
 public:
  // Reactor::complete, or something that leads there; called from two threads.
  using Complete = std::function<void(ledger::Event)>;
  // The device outlives it. device_lost, resource_exhausted.
  static absl::StatusOr<std::unique_ptr<RealBytes>> create(const RealBytesOptions& options,
                                                           cuda::Device& device, Complete complete);

  // ---- for the edges
  // ------------------------------------------------------------------------------ not_found: no
  // such slab (any more).
  absl::StatusOr<tiers::SlabExport> export_slab(SlabId slab, ledger::ShareSlab::Access access);
  // A read-only descriptor of the tenant's shadow table, made at the first call.
  absl::StatusOr<UniqueFd> share_shadow(TenantId tenant);
  // In all shadow tables from now on.
  void set_daemon_epoch(uint64_t epoch);

  const tiers::HostTier& host() const { return host_; }
  const tiers::DeviceTier& slabs() const { return slabs_; }
  const tiers::CopyTotals& totals() const { return copier_->totals(); }
  size_t copies_in_flight() const { return copier_->in_flight(); }

  // ---- damage, for the lab
  // ------------------------------------------------------------------------
  absl::Status flip_host(ContentId content, uint64_t bit) { return host_.flip_bit(content, bit); }
  absl::Status zero_host(ContentId content) { return host_.zero(content); }
  void unlink_host(ContentId content) { host_.drop(content); }
  // The bytes of a replica as they are, unverified. not_found.
  absl::StatusOr<std::string> read_host(ContentId content);

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
  struct Owner {  // of a slab
    TenantId tenant;
    NamespaceId space;
  };

  RealBytes(const RealBytesOptions& options, cuda::Device& device)
      : options_(options), slabs_(device), host_(options.host) {}
  absl::StatusOr<tiers::ShadowFile*> shadow_of(TenantId tenant);

  const RealBytesOptions options_;
  uint64_t daemon_epoch_ = 0;
  tiers::DeviceTier slabs_;
  tiers::HostTier host_;
  absl::flat_hash_map<SlabId, Owner> owners_;
  absl::flat_hash_map<TenantId, std::unique_ptr<tiers::ShadowFile>> shadows_;
  std::unique_ptr<tiers::Copier> copier_;  // last: its thread uses the tiers
};

}  // namespace memdecay::reactor
