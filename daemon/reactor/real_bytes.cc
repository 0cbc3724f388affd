// See real_bytes.h.
#include "daemon/reactor/real_bytes.h"

#include <utility>

#include "proto/contract/shadow_table.h"

namespace memdecay::reactor {
namespace {

tiers::CopyDirection direction_of(ledger::CopyKind kind) {
  switch (kind) {
    case ledger::CopyKind::kEvict:
    case ledger::CopyKind::kStore:
      return tiers::CopyDirection::kToHost;
    case ledger::CopyKind::kRestore:
      return tiers::CopyDirection::kToDevice;
    case ledger::CopyKind::kVerify:
      return tiers::CopyDirection::kVerify;
  }
  return tiers::CopyDirection::kVerify;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RealBytes>> RealBytes::create(const RealBytesOptions& options,
                                                             cuda::Device& device,
                                                             Complete complete) {
  std::unique_ptr<RealBytes> bytes(new RealBytes(options, device));
  absl::StatusOr<std::unique_ptr<tiers::Copier>> copier =
      tiers::Copier::create(device, bytes->slabs_, bytes->host_,
                            [complete = std::move(complete)](const tiers::CopyOutcome& outcome) {
                              complete(ledger::CopyDone{outcome.id, outcome.status,
                                                        outcome.checksum.value_or(Checksum{})});
                            });
  if (!copier.ok()) return copier.status();
  bytes->copier_ = *std::move(copier);
  return bytes;
}

absl::StatusOr<tiers::SlabExport> RealBytes::export_slab(SlabId slab,
                                                         ledger::ShareSlab::Access access) {
  const bool writes = access == ledger::ShareSlab::Access::kReadWrite;
  return slabs_.export_slab(slab, writes ? cuda::Access::kReadWrite : cuda::Access::kReadOnly);
}

absl::StatusOr<tiers::ShadowFile*> RealBytes::shadow_of(TenantId tenant) {
  const auto at = shadows_.find(tenant);
  if (at != shadows_.end()) return at->second.get();
  absl::StatusOr<tiers::ShadowFile> made = tiers::ShadowFile::create(options_.shadow_records);
  if (!made.ok()) return made.status();
  made->writer().set_daemon_epoch(daemon_epoch_);
  auto& kept = shadows_[tenant] = std::make_unique<tiers::ShadowFile>(*std::move(made));
  return kept.get();
}

absl::StatusOr<UniqueFd> RealBytes::share_shadow(TenantId tenant) {
  absl::StatusOr<tiers::ShadowFile*> shadow = shadow_of(tenant);
  if (!shadow.ok()) return shadow.status();
  return (*shadow)->share();
}

void RealBytes::set_daemon_epoch(uint64_t epoch) {
  daemon_epoch_ = epoch;
  for (auto& [tenant, shadow] : shadows_) shadow->writer().set_daemon_epoch(epoch);
}

absl::StatusOr<std::string> RealBytes::read_host(ContentId content) {
  const absl::StatusOr<tiers::HostTier::Record> record = host_.begin_read(content);
  if (!record.ok()) return record.status();
  std::string bytes(reinterpret_cast<const char*>(record->page()), record->page_bytes);
  // Nothing was taken, so nothing is compared.
  host_.end_read(*record, content, std::nullopt).IgnoreError();
  return bytes;
}

absl::Status RealBytes::create_slab(const ledger::CreateSlab& slab) {
  absl::Status created = slabs_.create(slab.slab, {slab.page_bytes, slab.pages});
  if (!created.ok()) return created;
  owners_.emplace(slab.slab, Owner{slab.tenant, slab.name_space});
  // A full shadow table costs re-adoption after a restart, nothing now.
  absl::StatusOr<tiers::ShadowFile*> shadow = shadow_of(slab.tenant);
  if (shadow.ok()) (*shadow)->writer().add_slab(slab.slab, slab.pages).IgnoreError();
  return absl::OkStatus();
}

void RealBytes::destroy_slab(SlabId slab) {
  const auto owner = owners_.find(slab);
  if (owner == owners_.end()) return;  // it could not be made
  const auto shadow = shadows_.find(owner->second.tenant);
  if (shadow != shadows_.end()) shadow->second->writer().remove_slab(slab).IgnoreError();
  owners_.erase(owner);
  slabs_.destroy(slab);
}

void RealBytes::start_copy(const ledger::StartCopy& copy) {
  copier_->start({.id = copy.copy,
                  .direction = direction_of(copy.kind),
                  .content = copy.content,
                  .slab = copy.slot.slab,
                  .index = copy.slot.index,
                  .bytes = copy.bytes});
}

void RealBytes::cancel_copy(CopyId copy) { copier_->cancel(copy); }

std::optional<ledger::CopyDone> RealBytes::finish_copy(ledger::CopyDone done) {
  // A failed move may carry a checksum; only what ended well is compared and kept.
  std::optional<Checksum> checksum;
  if (done.status.ok()) checksum = done.checksum;
  done.status = copier_->finish({done.copy, std::move(done.status), checksum}).status;
  return done;
}

void RealBytes::drop_host(ContentId content) {
  host_.drop(content);
  copier_->unwanted(content);
}

void RealBytes::shadow_row(const ledger::ShadowRow& row) {
  const auto owner = owners_.find(row.slot.slab);
  if (owner == owners_.end()) return;
  const auto shadow = shadows_.find(owner->second.tenant);
  if (shadow == shadows_.end()) return;
  ShadowEntry entry;
  entry.slot = row.slot;
  entry.state = row.state;
  entry.space = owner->second.space;
  if (row.key != PageKey{}) entry.key = row.key;
  if (row.checksum != Checksum{}) entry.checksum = row.checksum;
  // not_found: the table was full when the slab was made.
  shadow->second->writer().write(entry).IgnoreError();
}

}  // namespace memdecay::reactor
