// Slots and slabs: which places exist, which are free, who may map them. Counts pages, whatever the
// device's granularity. A slab belongs to one tenant and layout; when it is wholly free another
// pool may have its room: it is retired (engines unmap it, then it is destroyed) and a fresh one
// made, so nobody ever reads another tenant's bytes and nothing is reused under a mapped address.
// Thread: the ledger's. Not here: which page is given up for a slot (choose.h).
#pragma once

#include <optional>

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

// Free slots of the whole pool, as far as memory is really there.
uint32_t free_slots(const State& state);
// Slots that this tenant and layout could take now.
uint32_t takeable(const State& state, const PoolKey& pool);
// A reserved slot for `writer` (0: a restore's target); nullopt when takeable() is 0.
std::optional<SlotRef> take_slot(Context& context, const PoolKey& pool, uint64_t page_bytes,
                                 EngineId writer);
// Engine placement: this block of the engine's buffer; nullopt when it is not free.
std::optional<SlotRef> take_block(Context& context, const Engine& engine, uint32_t block);
uint32_t free_blocks(const State& state, const Engine& engine);
// A free block of the buffer.
std::optional<uint32_t> free_block(const State& state, const Engine& engine);

void set_slot_state(Context& context, const SlotRef& ref, SlotState next);
void free_slot(Context& context, const SlotRef& ref);
// Nobody gets the slot before the writer is gone, its fences have passed and its copy has ended.
// `lent`: the page for which an engine that places blocks itself hears Released then.
void quarantine_slot(Context& context, const SlotRef& ref, EngineId writer, CopyId copy,
                     uint32_t open_fences, ViewRef lent = {});
// Frees it if nothing holds it any more.
void settle_quarantine(Context& context, const SlotRef& ref);

// The engine may map the slot's slab.
void share_slot(Context& context, EngineId engine, const SlotRef& ref, ShareSlab::Access access);
// Asks engines to let go of empty slabs of other pools; returns the pages that will come of it.
uint32_t reclaim_foreign(Context& context, const PoolKey& pool, uint32_t pages);
// Pages in retiring slabs that are empty and only wait for engines to unmap them.
uint32_t reclaimable(const State& state);
void retire_slab(Context& context, Slab& slab);
// The engine has unmapped it, or is dead.
void unmapped(Context& context, EngineId engine, SlabId slab);
void forget_mapper(Context& context, EngineId engine);
// A buffer slab for an engine that places blocks itself.
absl::StatusOr<SlabId> make_buffer(Context& context, const Engine& engine, const LayoutRef& layout,
                                   uint32_t blocks);
// Retires slabs until they fit into options.device_pages.
void shrink_to_capacity(Context& context);

}  // namespace memdecay::ledger
