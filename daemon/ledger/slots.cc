// Slots: taking, freeing, quarantine (see slots.h). Slabs are in slabs.cc.
#include "daemon/ledger/slots.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/slabs.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/check.h"

namespace memdecay::ledger {
namespace {

// How many free slots are looked at for one whose slab the writer maps already.
constexpr int kNearbySlots = 64;

void mark_used(State& state, Slab& slab, uint32_t index) {
  state.free[{slab.tenant, slab.name_space}].erase({slab.id, index});
  if (slab.used == 0) state.empty[{slab.tenant, slab.name_space}].erase(slab.id);
  ++slab.used;
  ++state.tenants.at(slab.tenant).used;
  if (slab.life == Slab::Life::kActive) ++state.used_slots;
}

SlotRef reserve(Context& context, Slab& slab, uint32_t index, EngineId writer) {
  Slot& slot = slab.slots[index];
  MEMDECAY_CHECK(slot.state == SlotState::kFree);
  mark_used(context.state, slab, index);
  slot.generation = context.state.next_generation++;
  slot.writer = writer;
  const SlotRef ref{slab.id, index, slot.generation};
  set_slot_state(context, ref, SlotState::kReserved);
  return ref;
}

}  // namespace

uint32_t free_slots(const State& state) {
  const uint32_t taken = state.used_slots + state.retiring_pages;
  return taken >= state.options.device_pages ? 0 : state.options.device_pages - taken;
}

uint32_t takeable(const State& state, const PoolKey& pool) {
  uint64_t pages = 0;
  const auto own = state.free.find(pool);
  if (own != state.free.end()) pages += own->second.size();
  if (state.slab_pages_total < state.options.device_pages) {
    pages += state.options.device_pages - state.slab_pages_total;
  }
  for (const auto& [other, slabs] : state.empty) {
    if (other == pool) continue;
    for (const SlabId id : slabs) {
      const Slab& slab = state.slabs.at(id);
      if (slab.mappers.empty()) pages += slab.slots.size();
    }
  }
  return static_cast<uint32_t>(std::min<uint64_t>(pages, free_slots(state)));
}

std::optional<SlotRef> take_slot(Context& context, const PoolKey& pool, uint64_t page_bytes,
                                 EngineId writer) {
  State& state = context.state;
  if (free_slots(state) == 0) return std::nullopt;
  if (state.free[pool].empty() && !make_slab(context, pool, page_bytes)) return std::nullopt;
  const auto& free = state.free[pool];
  auto chosen = *free.begin();
  if (writer) {
    int looked = 0;
    for (const auto& candidate : free) {
      if (++looked > kNearbySlots) break;
      if (state.slabs.at(candidate.first).mappers.contains(writer)) {
        chosen = candidate;
        break;
      }
    }
  }
  return reserve(context, state.slabs.at(chosen.first), chosen.second, writer);
}

std::optional<SlotRef> take_block(Context& context, const Engine& engine, uint32_t block) {
  Slab* slab = find_slab(context.state, engine.buffer);
  if (slab == nullptr || block >= slab->slots.size()) return std::nullopt;
  if (slab->slots[block].state != SlotState::kFree) return std::nullopt;
  return reserve(context, *slab, block, engine.id);
}

uint32_t free_blocks(const State& state, const Engine& engine) {
  const auto slab = state.slabs.find(engine.buffer);
  if (slab == state.slabs.end() || slab->second.life == Slab::Life::kRetiring) return 0;
  return static_cast<uint32_t>(slab->second.slots.size()) - slab->second.used;
}

std::optional<uint32_t> free_block(const State& state, const Engine& engine) {
  const auto slab = state.slabs.find(engine.buffer);
  if (slab == state.slabs.end()) return std::nullopt;
  for (uint32_t i = 0; i < slab->second.slots.size(); ++i) {
    if (slab->second.slots[i].state == SlotState::kFree) return i;
  }
  return std::nullopt;
}

void set_slot_state(Context& context, const SlotRef& ref, SlotState next) {
  Slot* slot = find_slot(context.state, ref);
  MEMDECAY_CHECK(slot != nullptr);
  MEMDECAY_CHECK(slot_may_become(slot->state, next));
  slot->state = next;
  ShadowRow row{.slot = ref, .state = next};
  if (const Content* content = find_content(context.state, slot->content)) {
    if (content->key.has_value()) row.key = *content->key;
    if (content->checksum.has_value()) row.checksum = *content->checksum;
  }
  context.out.emplace_back(row);
}

void free_slot(Context& context, const SlotRef& ref) {
  State& state = context.state;
  Slot* slot = find_slot(state, ref);
  MEMDECAY_CHECK(slot != nullptr);
  slot->content = {};
  slot->holder = {};
  slot->writer = {};
  slot->open_fences = 0;
  slot->copy = {};
  set_slot_state(context, ref, SlotState::kFree);
  Slab& slab = state.slabs.at(ref.slab);
  --slab.used;
  --state.tenants.at(slab.tenant).used;
  if (slab.life == Slab::Life::kRetiring) {
    settle_retired(context, slab);
    return;
  }
  --state.used_slots;
  if (slab.buffer_of) return;
  const PoolKey pool{slab.tenant, slab.name_space};
  state.free[pool].insert({ref.slab, ref.index});
  if (slab.used == 0) state.empty[pool].insert(slab.id);
}

void quarantine_slot(Context& context, const SlotRef& ref, EngineId writer, CopyId copy,
                     uint32_t open_fences, ViewRef lent) {
  Slot* slot = find_slot(context.state, ref);
  MEMDECAY_CHECK(slot != nullptr);
  slot->content = {};
  slot->holder = lent;
  set_slot_state(context, ref, SlotState::kQuarantined);
  slot->writer = writer;
  slot->copy = copy;
  slot->open_fences = open_fences;
  settle_quarantine(context, ref);
}

void settle_quarantine(Context& context, const SlotRef& ref) {
  const Slot* slot = find_slot(context.state, ref);
  if (slot == nullptr || slot->state != SlotState::kQuarantined) return;
  if (slot->writer || slot->copy || slot->open_fences > 0) return;
  const ViewRef lent = slot->holder;
  const EngineId engine = context.state.slabs.at(ref.slab).buffer_of;
  free_slot(context, ref);
  if (engine && lent.session) {
    notify(context, engine, lent.session, ReleasedNotice{{{lent.page, ref}}});
  }
}

}  // namespace memdecay::ledger
