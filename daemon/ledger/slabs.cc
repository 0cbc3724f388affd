// Slabs: made for a pool, shared with engines, retired and destroyed (see slots.h, slabs.h).
#include "daemon/ledger/slabs.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/slots.h"
#include "proto/contract/check.h"

namespace memdecay::ledger {
namespace {

Slab& add_slab(Context& context, const PoolKey& pool, uint64_t page_bytes, uint32_t pages) {
  State& state = context.state;
  const SlabId id{state.next_slab++};
  Slab slab{
      .id = id, .tenant = pool.tenant, .name_space = pool.name_space, .page_bytes = page_bytes};
  slab.slots.resize(pages);
  state.slab_pages_total += pages;
  context.out.emplace_back(CreateSlab{id, pool.tenant, pool.name_space, page_bytes, pages});
  return state.slabs.emplace(id, std::move(slab)).first->second;
}

// Makes room by one empty slab of another pool that nobody maps.
bool retire_one_foreign(Context& context, const PoolKey& pool) {
  for (const auto& [other, slabs] : context.state.empty) {
    if (other == pool) continue;
    for (const SlabId id : slabs) {
      Slab& slab = context.state.slabs.at(id);
      if (!slab.mappers.empty()) continue;
      retire_slab(context, slab);
      return true;
    }
  }
  return false;
}

}  // namespace

bool make_slab(Context& context, const PoolKey& pool, uint64_t page_bytes) {
  State& state = context.state;
  while (state.slab_pages_total >= state.options.device_pages) {
    if (!retire_one_foreign(context, pool)) return false;
  }
  const uint32_t pages = std::min(std::max(1u, state.options.slab_pages),
                                  state.options.device_pages - state.slab_pages_total);
  Slab& slab = add_slab(context, pool, page_bytes, pages);
  for (uint32_t i = 0; i < pages; ++i) state.free[pool].insert({slab.id, i});
  state.empty[pool].insert(slab.id);
  return true;
}

absl::StatusOr<SlabId> make_buffer(Context& context, const Engine& engine, const LayoutRef& layout,
                                   uint32_t blocks) {
  State& state = context.state;
  const PoolKey pool{engine.tenant, layout.name_space};
  while (uint64_t{state.slab_pages_total} + blocks > state.options.device_pages) {
    if (blocks > state.options.device_pages || !retire_one_foreign(context, pool)) {
      return make_error(ErrorCode::kResourceExhausted,
                        absl::StrCat("a buffer of ", blocks, " blocks"),
                        absl::StrCat("the pool has ", state.options.device_pages, " pages, ",
                                     state.slab_pages_total, " of them in slabs"),
                        "ask for fewer blocks or raise device.pages");
    }
  }
  Slab& slab = add_slab(context, pool, layout.page_bytes, blocks);
  slab.buffer_of = engine.id;
  share_slot(context, engine.id, SlotRef{slab.id, 0, 0}, ShareSlab::Access::kReadWrite);
  return slab.id;
}

void share_slot(Context& context, EngineId engine, const SlotRef& ref, ShareSlab::Access access) {
  Slab* slab = find_slab(context.state, ref.slab);
  MEMDECAY_CHECK(slab != nullptr);
  const auto known = slab->mappers.find(engine);
  if (known != slab->mappers.end() && known->second >= access) return;
  slab->mappers[engine] = access;
  context.out.emplace_back(ShareSlab{engine, ref.slab, access});
}

void retire_slab(Context& context, Slab& slab) {
  State& state = context.state;
  if (slab.life == Slab::Life::kRetiring) return;
  slab.life = Slab::Life::kRetiring;
  state.empty[{slab.tenant, slab.name_space}].erase(slab.id);
  auto& free = state.free[{slab.tenant, slab.name_space}];
  for (uint32_t i = 0; i < slab.slots.size(); ++i) free.erase({slab.id, i});
  state.used_slots -= slab.used;
  state.retiring_pages += static_cast<uint32_t>(slab.slots.size());
  settle_retired(context, slab);
}

void settle_retired(Context& context, Slab& slab) {
  State& state = context.state;
  if (slab.life != Slab::Life::kRetiring || slab.used > 0) return;
  for (const auto& [engine, access] : slab.mappers) {
    if (slab.unmap_asked.insert(engine).second) {
      notify(context, engine, {}, UnmapSlabNotice{slab.id});
    }
  }
  if (!slab.mappers.empty()) return;
  state.retiring_pages -= static_cast<uint32_t>(slab.slots.size());
  state.slab_pages_total -= static_cast<uint32_t>(slab.slots.size());
  context.out.emplace_back(DestroySlab{slab.id});
  state.slabs.erase(slab.id);
}

uint32_t reclaimable(const State& state) {
  if (state.slab_pages_total - state.retiring_pages > state.options.device_pages) return 0;
  uint32_t pages = 0;
  if (state.retiring_pages == 0) return pages;
  for (const auto& [id, slab] : state.slabs) {
    if (slab.life == Slab::Life::kRetiring && slab.used == 0) {
      pages += static_cast<uint32_t>(slab.slots.size());
    }
  }
  return pages;
}

uint32_t reclaim_foreign(Context& context, const PoolKey& pool, uint32_t pages) {
  State& state = context.state;
  uint32_t coming = 0;
  std::vector<SlabId> foreign;
  for (const auto& [id, slab] : state.slabs) {
    if (slab.life == Slab::Life::kRetiring) {
      if (slab.used == 0) coming += static_cast<uint32_t>(slab.slots.size());
      continue;
    }
    const bool other = slab.tenant != pool.tenant || slab.name_space != pool.name_space;
    if (slab.used == 0 && other && !slab.buffer_of) foreign.push_back(id);
  }
  for (const SlabId id : foreign) {
    if (coming >= pages) break;
    Slab& slab = state.slabs.at(id);
    coming += static_cast<uint32_t>(slab.slots.size());
    retire_slab(context, slab);
  }
  return coming;
}

void unmapped(Context& context, EngineId engine, SlabId id) {
  Slab* slab = find_slab(context.state, id);
  if (slab == nullptr) return;
  slab->mappers.erase(engine);
  slab->unmap_asked.erase(engine);
  settle_retired(context, *slab);
}

void forget_mapper(Context& context, EngineId engine) {
  std::vector<SlabId> mapped;
  for (const auto& [id, slab] : context.state.slabs) {
    if (slab.mappers.contains(engine)) mapped.push_back(id);
  }
  for (const SlabId id : mapped) unmapped(context, engine, id);
}

void shrink_to_capacity(Context& context) {
  State& state = context.state;
  const auto active = [&state] { return state.slab_pages_total - state.retiring_pages; };
  // Free slabs first, then the youngest: the oldest hold what has been kept longest.
  for (const bool only_free : {true, false}) {
    std::vector<SlabId> order;
    for (const auto& [id, slab] : state.slabs) {
      if (slab.life != Slab::Life::kActive || slab.buffer_of) continue;  // a buffer is its engine's
      if (!only_free || slab.used == 0) order.push_back(id);
    }
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      if (active() <= state.options.device_pages) return;
      retire_slab(context, state.slabs.at(*id));
    }
  }
}

}  // namespace memdecay::ledger
