// See sim_bytes.h.
#include "tests/sim/sim_bytes.h"

#include <algorithm>
#include <string>

#include "cuda/checksum.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::sim {
namespace {

// Behind the last slot of a slab: a copy that writes too far is found.
constexpr size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xa5};

std::string slot_name(const SlotRef& slot) {
  return "slot " + std::to_string(slot.slab.value) + "/" + std::to_string(slot.index);
}

}  // namespace

SimBytes::SimBytes(uint64_t seed, Complete complete)
    : random_(seed), complete_(std::move(complete)) {}

std::span<std::byte> SimBytes::place(const SlotRef& slot) {
  const auto at = slabs_.find(slot.slab);
  if (at == slabs_.end() || slot.index >= at->second.pages) return {};
  Slab& slab = at->second;
  return std::span(slab.bytes).subspan(slot.index * slab.page_bytes, slab.page_bytes);
}

std::span<const std::byte> SimBytes::place(const SlotRef& slot) const {
  const auto at = slabs_.find(slot.slab);
  if (at == slabs_.end() || slot.index >= at->second.pages) return {};
  const Slab& slab = at->second;
  return std::span(slab.bytes).subspan(slot.index * slab.page_bytes, slab.page_bytes);
}

absl::Status SimBytes::map(EngineId engine, SlabId slab, Access access) {
  const auto at = slabs_.find(slab);
  if (at == slabs_.end()) {
    return make_error(ErrorCode::kNotFound, "slab " + std::to_string(slab.value));
  }
  const auto [mapping, fresh] = at->second.mappings.try_emplace(engine, access);
  if (!fresh && access == Access::kReadWrite) mapping->second = access;
  return absl::OkStatus();
}

void SimBytes::unmap(EngineId engine, SlabId slab) {
  const auto at = slabs_.find(slab);
  if (at == slabs_.end()) return;
  at->second.mappings.erase(engine);
  forget_if_unused(slab);
}

void SimBytes::unmap_all(EngineId engine) {
  std::vector<SlabId> slabs;
  for (const auto& [id, slab] : slabs_) {
    if (slab.mappings.contains(engine)) slabs.push_back(id);
  }
  for (const SlabId slab : slabs) unmap(engine, slab);
}

absl::Status SimBytes::write(EngineId engine, const SlotRef& slot, uint64_t offset,
                             std::span<const std::byte> bytes) {
  const std::optional<Access> access = mapping(engine, slot.slab);
  if (!access) return make_error(ErrorCode::kNotFound, slot_name(slot), "no mapping of its slab");
  if (*access != Access::kReadWrite) {
    return make_error(ErrorCode::kPermission, "write " + slot_name(slot), "mapped read-only");
  }
  const std::span<std::byte> to = place(slot);
  if (offset > to.size() || bytes.size() > to.size() - offset) {
    return make_error(ErrorCode::kOutOfRange, "write " + slot_name(slot));
  }
  std::copy(bytes.begin(), bytes.end(), to.begin() + static_cast<std::ptrdiff_t>(offset));
  return absl::OkStatus();
}

absl::StatusOr<PageBytes> SimBytes::read(EngineId engine, const SlotRef& slot) const {
  if (!mapping(engine, slot.slab)) {
    return make_error(ErrorCode::kNotFound, slot_name(slot), "no mapping of its slab");
  }
  const std::span<const std::byte> from = place(slot);
  if (from.empty()) return make_error(ErrorCode::kOutOfRange, "read " + slot_name(slot));
  return PageBytes(from.begin(), from.end());
}

std::optional<Access> SimBytes::mapping(EngineId engine, SlabId slab) const {
  const auto at = slabs_.find(slab);
  if (at == slabs_.end()) return std::nullopt;
  const auto found = at->second.mappings.find(engine);
  if (found == at->second.mappings.end()) return std::nullopt;
  return found->second;
}

size_t SimBytes::mappings(EngineId engine) const {
  return static_cast<size_t>(std::count_if(slabs_.begin(), slabs_.end(), [engine](const auto& one) {
    return one.second.mappings.contains(engine);
  }));
}

std::optional<PageBytes> SimBytes::slot_bytes(const SlotRef& slot) const {
  const std::span<const std::byte> bytes = place(slot);
  if (bytes.empty()) return std::nullopt;
  return PageBytes(bytes.begin(), bytes.end());
}

std::optional<PageBytes> SimBytes::host_bytes(ContentId content) const {
  const auto at = host_.find(content);
  if (at == host_.end()) return std::nullopt;
  return at->second.bytes;
}

std::vector<ContentId> SimBytes::host_contents() const {
  std::vector<ContentId> contents;
  for (const auto& [content, replica] : host_) contents.push_back(content);
  return contents;
}

bool SimBytes::flip_host(ContentId content, uint64_t bit) {
  const auto at = host_.find(content);
  if (at == host_.end()) return false;
  PageBytes& bytes = at->second.bytes;
  bytes[bit / 8 % bytes.size()] ^= std::byte{1} << (bit % 8);
  return true;
}

bool SimBytes::zero_host(ContentId content) {
  const auto at = host_.find(content);
  if (at == host_.end()) return false;
  std::fill(at->second.bytes.begin(), at->second.bytes.end(), std::byte{0});
  return true;
}

bool SimBytes::unlink_host(ContentId content) { return host_.erase(content) != 0; }

void SimBytes::scribble(const SlotRef& slot) {
  for (std::byte& byte : place(slot)) byte ^= std::byte{0x5a};
}

std::vector<ledger::StartCopy> SimBytes::in_flight() const {
  std::vector<ledger::StartCopy> copies;
  for (const Copy& copy : in_flight_) copies.push_back(copy.what);
  return copies;
}

void SimBytes::complete_copy(size_t index) {
  MEMDECAY_CHECK(index < in_flight_.size());
  const auto at = in_flight_.begin() + static_cast<std::ptrdiff_t>(index);
  Copy copy = *at;
  in_flight_.erase(at);
  if (copy.moves == Copy::Moves::kAtEnd) move(copy);
  const ledger::CopyDone outcome = copy.outcome;
  ended_.emplace(outcome.copy, std::move(copy));
  complete_(outcome);
}

void SimBytes::move(Copy& copy) {
  const std::span<std::byte> slot = place(copy.what.slot);
  ledger::CopyDone& done = copy.outcome;
  if (slot.size() != copy.what.bytes) {
    done.status = make_error(ErrorCode::kInternal, "a copy of " + slot_name(copy.what.slot));
    return;
  }
  switch (copy.what.kind) {
    case ledger::CopyKind::kEvict:
    case ledger::CopyKind::kStore:
      done.checksum = cuda::checksum_of(slot);
      copy.replica = Replica{PageBytes(slot.begin(), slot.end()), done.checksum};
      break;
    case ledger::CopyKind::kVerify:
      done.checksum = cuda::checksum_of(slot);
      break;
    case ledger::CopyKind::kRestore:
      if (!copy.replica) {
        done.status = make_error(ErrorCode::kDataLoss, "the host replica of a page", "it is gone");
        break;
      }
      done.checksum = cuda::checksum_of(copy.replica->bytes);
      if (done.checksum != copy.replica->checksum || copy.replica->bytes.size() != slot.size()) {
        done.status = make_error(ErrorCode::kDataLoss, "the host replica of a page");
        break;
      }
      std::copy(copy.replica->bytes.begin(), copy.replica->bytes.end(), slot.begin());
      break;
  }
}

absl::Status SimBytes::create_slab(const ledger::CreateSlab& slab) {
  Slab made{.page_bytes = slab.page_bytes, .pages = slab.pages};
  made.bytes.resize(slab.page_bytes * slab.pages);
  made.bytes.resize(made.bytes.size() + kGuardBytes, kGuard);
  MEMDECAY_CHECK(slabs_.emplace(slab.slab, std::move(made)).second);  // ids are never used twice
  return absl::OkStatus();
}

void SimBytes::destroy_slab(SlabId slab) {
  const auto at = slabs_.find(slab);
  if (at == slabs_.end()) return;  // it could not be made
  at->second.owner = Slab::Owner::kGone;
  forget_if_unused(slab);
}

void SimBytes::forget_if_unused(SlabId slab) {
  const auto at = slabs_.find(slab);
  if (at == slabs_.end()) return;
  const Slab& one = at->second;
  const std::vector<Copy*> copies = unfinished();
  const bool copied = std::any_of(copies.begin(), copies.end(), [slab](const Copy* copy) {
    return copy->what.slot.slab == slab;
  });
  if (one.owner == Slab::Owner::kDaemon || !one.mappings.empty() || copied) return;
  const auto guard = one.bytes.end() - static_cast<std::ptrdiff_t>(kGuardBytes);
  MEMDECAY_CHECK(std::all_of(guard, one.bytes.end(), [](std::byte b) { return b == kGuard; }));
  slabs_.erase(at);
}

std::vector<SimBytes::Copy*> SimBytes::unfinished() {
  std::vector<Copy*> copies;
  for (Copy& copy : in_flight_) copies.push_back(&copy);
  for (auto& [id, copy] : ended_) copies.push_back(&copy);
  return copies;
}

void SimBytes::start_copy(const ledger::StartCopy& copy) {
  Copy started{.what = copy, .outcome = {copy.copy, absl::OkStatus(), {}}};
  if (copy.kind == ledger::CopyKind::kRestore) {
    const auto at = host_.find(copy.content);
    if (at != host_.end()) started.replica = at->second;
  }
  if (random_.chance(0.5)) {
    started.moves = Copy::Moves::kAtStart;
    move(started);
  }
  in_flight_.push_back(std::move(started));
}

void SimBytes::cancel_copy(CopyId copy) {
  for (Copy* one : unfinished()) {
    if (one->what.copy == copy) one->wanted = Copy::Wanted::kNo;
  }
  for (Copy& one : in_flight_) {
    // Half of the cancels come too late, as with a real mover.
    if (one.what.copy != copy || one.moves != Copy::Moves::kAtEnd || random_.chance(0.5)) continue;
    one.moves = Copy::Moves::kNever;
    one.outcome.status = absl::CancelledError("cancelled");
  }
}

std::optional<ledger::CopyDone> SimBytes::finish_copy(ledger::CopyDone done) {
  auto ended = ended_.extract(done.copy);
  if (!ended) return done;
  const Copy copy = std::move(ended.mapped());
  const bool stores =
      copy.what.kind == ledger::CopyKind::kEvict || copy.what.kind == ledger::CopyKind::kStore;
  if (stores && done.status.ok()) {
    if (copy.wanted == Copy::Wanted::kYes) {
      host_[copy.what.content] = *copy.replica;
    } else {
      done.status = absl::CancelledError("nobody wants the replica");
    }
  }
  if (copy.what.kind == ledger::CopyKind::kRestore && absl::IsDataLoss(done.status)) {
    host_.erase(copy.what.content);
  }
  forget_if_unused(copy.what.slot.slab);
  return done;
}

void SimBytes::drop_host(ContentId content) {
  host_.erase(content);
  for (Copy* copy : unfinished()) {
    if (copy->what.content == content) copy->wanted = Copy::Wanted::kNo;
  }
}

void SimBytes::shadow_row(const ledger::ShadowRow&) {}

}  // namespace memdecay::sim
