// See scripted_engine.h.
#include "tests/scenario/scripted_engine.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::scenario {
namespace {

// Notices that an engine answers, in the order in which they came.
bool wants_answer(const ledger::Notice& notice) {
  return std::holds_alternative<ledger::EvictNotice>(notice.body) ||
         std::holds_alternative<ledger::WithdrawNotice>(notice.body) ||
         std::holds_alternative<ledger::RestoreNotice>(notice.body) ||
         std::holds_alternative<ledger::UnmapSlabNotice>(notice.body);
}

}  // namespace

ScriptedEngine::ScriptedEngine(EngineSpec spec, sim::SimWorld& world, uint64_t seed)
    : spec_(std::move(spec)),
      world_(world),
      page_tokens_(page_tokens(spec_.layout)),
      random_(seed) {}

ledger::Origin ScriptedEngine::origin(RequestId request, TenantId tenant) const {
  return {.request = request, .tenant = tenant, .engine = id_, .epoch = epoch_};
}

void ScriptedEngine::attached(EngineId id, Epoch epoch, TenantId tenant) {
  tenant_ = tenant;
  id_ = id;
  epoch_ = epoch;
}

bool ScriptedEngine::can_run() const { return life_ == Life::kAlive && !inbox_.empty(); }

void ScriptedEngine::run(const std::function<void(const ledger::Reply&)>& answered) {
  const Item item = std::move(inbox_.front());
  inbox_.pop_front();
  if (const auto* share = std::get_if<ledger::ShareSlab>(&item)) {
    const absl::Status mapped = world_.bytes().map(id_, share->slab, share->access);
    if (!mapped.ok()) heard_.push_back({.kind = "map_failed", .code = error_code(mapped)});
  } else if (const auto* reply = std::get_if<ledger::Reply>(&item)) {
    learn(*reply);
    answered(*reply);
  } else {
    const ledger::Notice& notice = std::get<ledger::Notice>(item);
    hear(notice);
    if (!wants_answer(notice)) {
      if (const auto* gone = std::get_if<ledger::ReleasedNotice>(&notice.body)) released(*gone);
    } else if (acks_) {
      answer(notice);
    } else {
      unanswered_.push_back(notice);
    }
  }
}

void ScriptedEngine::set_life(Life life) {
  if (life == Life::kFrozen && life_ != Life::kFrozen) frozen_since_ = world_.clock().now();
  if (life != Life::kFrozen) frozen_since_.reset();
  life_ = life;
  if (life == Life::kGone) {
    inbox_.clear();
    unanswered_.clear();
    tables_.clear();
    world_.bytes().unmap_all(id_);
  }
}

void ScriptedEngine::set_acks(bool automatic) {
  acks_ = automatic;
  if (!automatic) return;
  while (!unanswered_.empty()) {
    const ledger::Notice notice = std::move(unanswered_.front());
    unanswered_.pop_front();
    answer(notice);
  }
}

void ScriptedEngine::hear(const ledger::Notice& notice) {
  const auto add = [&](std::string kind, std::optional<PageIndex> page,
                       std::optional<ErrorCode> code = std::nullopt) {
    heard_.push_back({std::move(kind), notice.session, page, code});
  };
  if (const auto* evict = std::get_if<ledger::EvictNotice>(&notice.body)) {
    for (const auto& [page, reason] : evict->pages) add("evict", page);
  } else if (const auto* withdrawn = std::get_if<ledger::WithdrawNotice>(&notice.body)) {
    for (const PageIndex page : withdrawn->pages) add("withdraw", page);
  } else if (const auto* gone = std::get_if<ledger::ReleasedNotice>(&notice.body)) {
    for (const auto& [page, slot] : gone->pages) add("released", page);
  } else if (const auto* restore = std::get_if<ledger::RestoreNotice>(&notice.body)) {
    for (const ledger::PageView& view : restore->pages) add("restore", view.page);
  } else if (std::holds_alternative<ledger::ReadyNotice>(notice.body)) {
    add("ready", std::nullopt);
  } else if (const auto* failed = std::get_if<ledger::FailedNotice>(&notice.body)) {
    add("failed", failed->page, failed->code);
  } else if (const auto* lost = std::get_if<ledger::LostNotice>(&notice.body)) {
    add("lost", lost->page);
  } else if (std::holds_alternative<ledger::BudgetNotice>(notice.body)) {
    add("budget", std::nullopt);
  } else if (std::holds_alternative<ledger::ModeNotice>(notice.body)) {
    add("mode", std::nullopt);
  } else if (std::holds_alternative<ledger::ShutdownNotice>(notice.body)) {
    add("shutdown", std::nullopt);
  } else if (std::holds_alternative<ledger::UnmapSlabNotice>(notice.body)) {
    add("unmap_slab", std::nullopt);
  }
}

void ScriptedEngine::answer(const ledger::Notice& notice) {
  if (const auto* evict = std::get_if<ledger::EvictNotice>(&notice.body)) {
    give_up(notice, *evict);
  } else if (const auto* withdrawn = std::get_if<ledger::WithdrawNotice>(&notice.body)) {
    withdraw(notice, *withdrawn);
  } else if (const auto* restore = std::get_if<ledger::RestoreNotice>(&notice.body)) {
    map_restored(notice, *restore);
  } else if (const auto* unmap = std::get_if<ledger::UnmapSlabNotice>(&notice.body)) {
    world_.bytes().unmap(id_, unmap->slab);
    post(ledger::SlabUnmapped{own_origin(), unmap->slab});
  }
}

void ScriptedEngine::give_up(const ledger::Notice& notice, const ledger::EvictNotice& evict) {
  const auto table = tables_.find(notice.session);
  if (table == tables_.end()) return;
  ledger::GaveUp gave_up{.origin = own_origin(),
                         .session = notice.session,
                         .decision = evict.decision,
                         .position = table->second.position};
  const bool reads_all_first = random_.chance(0.5);
  for (const auto& [page, reason] : evict.pages) {
    const auto slot = table->second.pages.find(page);
    if (slot == table->second.pages.end()) continue;
    if (reads_all_first && withdrawn_behind(notice.session, evict.decision, page)) continue;
    if (spec_.placement == Placement::kEngine) {
      lent_[{notice.session, page}] = slot->second.index;
    }
    table->second.pages.erase(slot);
    gave_up.pages.push_back(page);
  }
  if (!gave_up.pages.empty()) post(std::move(gave_up));
}

bool ScriptedEngine::withdrawn_behind(SessionId session, DecisionId decision,
                                      PageIndex page) const {
  const auto takes_back = [&](const ledger::Notice& notice) {
    const auto* withdrawn = std::get_if<ledger::WithdrawNotice>(&notice.body);
    return withdrawn != nullptr && notice.session == session && withdrawn->decision == decision &&
           std::find(withdrawn->pages.begin(), withdrawn->pages.end(), page) !=
               withdrawn->pages.end();
  };
  return std::any_of(unanswered_.begin(), unanswered_.end(), takes_back) ||
         std::any_of(inbox_.begin(), inbox_.end(), [&](const Item& item) {
           const auto* notice = std::get_if<ledger::Notice>(&item);
           return notice != nullptr && takes_back(*notice);
         });
}

void ScriptedEngine::withdraw(const ledger::Notice& notice,
                              const ledger::WithdrawNotice& withdrawn) {
  ledger::Kept kept{.origin = own_origin(), .session = notice.session};
  for (const PageIndex page : withdrawn.pages) {
    if (mapped(notice.session, page)) kept.pages.push_back(page);
  }
  post(std::move(kept));
}

void ScriptedEngine::map_restored(const ledger::Notice& notice,
                                  const ledger::RestoreNotice& restore) {
  const auto table = tables_.find(notice.session);
  if (table == tables_.end()) return;  // closed meanwhile
  ledger::Resident resident{
      .origin = own_origin(), .session = notice.session, .position = table->second.position};
  for (const ledger::PageView& view : restore.pages) {
    if (view.page >= table->second.granted) continue;  // truncated meanwhile
    table->second.pages[view.page] = view.slot;
    resident.pages.push_back(view.page);
    resident.generations.push_back(view.slot.generation);
  }
  if (!resident.pages.empty()) post(std::move(resident));
}

void ScriptedEngine::released(const ledger::ReleasedNotice& gone) {
  if (spec_.placement != Placement::kEngine) return;
  for (const auto& [page, slot] : gone.pages) {
    const uint32_t block = slot.index;
    const auto lent = std::find_if(lent_.begin(), lent_.end(),
                                   [block](const auto& entry) { return entry.second == block; });
    if (lent == lent_.end()) {
      heard_.push_back({.kind = "released_twice", .page = page});
      continue;
    }
    lent_.erase(lent);
  }
}

void ScriptedEngine::learn_pages(SessionId session, const std::vector<ledger::PageView>& views) {
  Table& table = tables_[session];
  for (const ledger::PageView& view : views) {
    table.granted = std::max(table.granted, view.page + 1);
    switch (view.state) {
      case PageState::kGranted:
      case PageState::kFilling:
      case PageState::kSealing:
      case PageState::kMapped:
      case PageState::kAsked:
        table.pages[view.page] = view.slot;
        break;
      case PageState::kGivenUp:
      case PageState::kHole:
      case PageState::kRestoring:
      case PageState::kDropped:
        break;
    }
  }
}

void ScriptedEngine::learn(const ledger::Reply& reply) {
  const auto asked = asked_.extract(reply.request);
  blocks_asked_.erase(reply.request);
  if (!reply.status.ok()) return;
  if (const auto* opened = std::get_if<ledger::SessionReply>(&reply.body)) {
    learn_pages(opened->session, opened->pages);
    Table& table = tables_[opened->session];
    table.position = std::max(table.position, opened->position);
    table.granted = std::max(table.granted, static_cast<uint32_t>(opened->pages.size()));
  }
  if (asked.empty()) return;
  if (const auto* grant = std::get_if<ledger::GrantReply>(&reply.body)) {
    learn_pages(asked.mapped(), grant->pages);
  } else if (const auto* acquired = std::get_if<ledger::AcquireReply>(&reply.body)) {
    learn_pages(asked.mapped(), acquired->views);
    Table& table = tables_[asked.mapped()];
    table.position = std::max(table.position, table.granted * page_tokens_);
  }
}

void ScriptedEngine::forget_from(SessionId session, PageIndex first) {
  const auto found = tables_.find(session);
  if (found == tables_.end()) return;
  Table& table = found->second;
  // Engine placement: what it no longer needs may still be copied down; the blocks are its own
  // again when the daemon releases them.
  for (auto slot = table.pages.lower_bound(first); slot != table.pages.end();) {
    if (spec_.placement == Placement::kEngine) lent_[{session, slot->first}] = slot->second.index;
    slot = table.pages.erase(slot);
  }
  table.granted = std::min(table.granted, first);
  table.position = std::min(table.position, first * page_tokens_);
}

std::vector<uint32_t> ScriptedEngine::free_blocks() const {
  std::set<uint32_t> used;
  for (const auto& [session, table] : tables_) {
    for (const auto& [page, slot] : table.pages) used.insert(slot.index);
  }
  for (const auto& [page, block] : lent_) used.insert(block);
  for (const auto& [request, blocks] : blocks_asked_) used.insert(blocks.begin(), blocks.end());
  std::vector<uint32_t> free;
  for (uint32_t block = 0; block < spec_.blocks; ++block) {
    if (!used.contains(block)) free.push_back(block);
  }
  return free;
}

absl::Status ScriptedEngine::prepare(ledger::Event& event) {
  const bool own_blocks = spec_.placement == Placement::kEngine;
  const auto need_blocks = [&](RequestId request, size_t count, std::vector<uint32_t>& blocks) {
    blocks = free_blocks();
    if (blocks.size() < count) {
      return make_error(ErrorCode::kResourceExhausted, absl::StrCat(count, " blocks of its own"),
                        absl::StrCat(blocks.size(), " are free"), "evict first");
    }
    blocks.resize(count);
    blocks_asked_[request] = blocks;
    return absl::OkStatus();
  };
  if (auto* extend = std::get_if<ledger::Extend>(&event)) {
    asked_[extend->origin.request] = extend->session;
    if (own_blocks) return need_blocks(extend->origin.request, extend->pages, extend->blocks);
  } else if (auto* restore = std::get_if<ledger::RestorePages>(&event)) {
    if (own_blocks) {
      return need_blocks(restore->origin.request, restore->pages.size(), restore->blocks);
    }
  } else if (auto* acquire = std::get_if<ledger::Acquire>(&event)) {
    if (acquire->session) asked_[acquire->origin.request] = acquire->session;
  } else if (auto* truncate = std::get_if<ledger::Truncate>(&event)) {
    forget_from(truncate->session, truncate->tokens / page_tokens_);
  } else if (auto* close = std::get_if<ledger::CloseSession>(&event)) {
    forget_from(close->session, 0);
    tables_.erase(close->session);
  } else if (auto* written = std::get_if<ledger::Written>(&event)) {
    tables_[written->session].position = written->position;
  } else if (auto* seal = std::get_if<ledger::Seal>(&event)) {
    Table& table = tables_[seal->session];
    table.position = std::max(table.position, (seal->first_page + seal->pages) * page_tokens_);
  }
  return absl::OkStatus();
}

std::optional<SlotRef> ScriptedEngine::mapped(SessionId session, PageIndex page) const {
  const auto table = tables_.find(session);
  if (table == tables_.end()) return std::nullopt;
  const auto slot = table->second.pages.find(page);
  if (slot == table->second.pages.end()) return std::nullopt;
  return slot->second;
}

void ScriptedEngine::post(ledger::Event event) {
  // Bounded by what the daemon asked; the stream lane is far larger.
  MEMDECAY_CHECK(world_.reactor().post_stream(std::move(event)) == reactor::Posted::kTaken);
}

}  // namespace memdecay::scenario
