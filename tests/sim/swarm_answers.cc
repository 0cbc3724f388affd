// What the swarm's engines do with replies and notices. See swarm.h.
#include <utility>

#include "daemon/reactor/trace.h"
#include "proto/contract/error.h"
#include "tests/sim/swarm.h"

namespace memdecay::sim {

// ---- what comes from the daemon
// ---------------------------------------------------------------------

void Swarm::reply(const ledger::Reply& reply) {
  const auto waits = waiting_.extract(reply.request);
  if (!waits) return problem("a reply to nobody: " + reactor::to_text(reply));
  const Waiting& waiting = waits.mapped();
  if (ModelSession* session = session_of(waiting.blocks)) {
    session->turn = ModelSession::Turn::kFree;
  }
  const ErrorCode code = error_code(reply.status);
  if (code == ErrorCode::kInternal) problem(waiting.name + ": " + reply.status.ToString());
  if (code == ErrorCode::kOk) {
    ++result_.done[waiting.name];
    if (waiting.answer) waiting.answer(reply);
  } else {
    ++result_.refused[waiting.name + " " + std::string(error_name(code))];
    if (waiting.refused) waiting.refused(reply);
  }
  for (const ledger::Notice& notice : std::exchange(early_, {})) {
    if (ModelSession* session = session_of(notice.session)) deliver(*session, notice);
  }
}

void Swarm::notify(const ledger::Notice& notice) {
  if (const auto* unmap = std::get_if<ledger::UnmapSlabNotice>(&notice.body)) {
    owe(notice.engine, [this, id = notice.engine, slab = unmap->slab] {
      world_.bytes().unmap(id, slab);
      call("unmapped", ledger::SlabUnmapped{origin(engines_.at(id)), slab}, {});
    });
    return;
  }
  ModelSession* session = session_of(notice.session);
  if (session != nullptr) {
    deliver(*session, notice);
  } else if (std::holds_alternative<ledger::RestoreNotice>(notice.body)) {
    early_.push_back(notice);
  }
}

void Swarm::deliver(ModelSession& session, const ledger::Notice& notice) {
  if (session.engine != notice.engine) return;  // it was taken from that engine
  if (const auto* evict = std::get_if<ledger::EvictNotice>(&notice.body)) {
    on_evict(session, *evict);
  } else if (const auto* withdraw = std::get_if<ledger::WithdrawNotice>(&notice.body)) {
    on_withdraw(session, *withdraw);
  } else if (const auto* released = std::get_if<ledger::ReleasedNotice>(&notice.body)) {
    on_released(session, *released);
  } else if (const auto* restore = std::get_if<ledger::RestoreNotice>(&notice.body)) {
    on_restore(session, *restore);
  } else if (const auto* lost = std::get_if<ledger::LostNotice>(&notice.body)) {
    on_lost(session, lost->page);
  } else if (std::holds_alternative<ledger::ReadyNotice>(notice.body)) {
    session.works = ModelSession::Works::kYes;
  } else if (const auto* failed = std::get_if<ledger::FailedNotice>(&notice.body)) {
    on_failed(session, failed->page);
  }
}

void Swarm::share_slab(const ledger::ShareSlab& share) {
  if (!world_.bytes().map(share.engine, share.slab, share.access).ok() &&
      options_.faults == SwarmOptions::Faults::kNone) {
    problem("a slab is shared that is not there: " + reactor::to_text(share));
  }
}

void Swarm::on_evict(ModelSession& session, const ledger::EvictNotice& notice) {
  for (const auto& [page, reason] : notice.pages) {
    if (page >= session.pages.size()) continue;
    session.pages[page].asked = notice.decision;
  }
  owe(session.engine,
      [this, id = session.id, decision = notice.decision] { give_up(id, decision); });
}

void Swarm::on_withdraw(ModelSession& session, const ledger::WithdrawNotice& notice) {
  std::vector<PageIndex> kept;
  for (const PageIndex page : notice.pages) {
    if (page >= session.pages.size() || !session.pages[page].asked) continue;
    session.pages[page].asked.reset();
    kept.push_back(page);
  }
  owe(session.engine, [this, id = session.id, engine = session.engine, kept] {
    call("kept", ledger::Kept{origin(engines_.at(engine)), id, kept}, {});
  });
}

void Swarm::on_released(ModelSession& session, const ledger::ReleasedNotice& notice) {
  for (const auto& [page, slot] : notice.pages) {
    if (page < session.pages.size() && session.pages[page].slot == slot) {
      problem("page " + std::to_string(page) + " was released and its engine still maps it");
    }
  }
}

void Swarm::on_restore(ModelSession& session, const ledger::RestoreNotice& notice) {
  for (const ledger::PageView& view : notice.pages) {
    if (view.page >= session.pages.size()) {  // cut off meanwhile, or about to be told of
      if (session.turn == ModelSession::Turn::kWaits) {
        early_.push_back({session.engine, session.id, ledger::RestoreNotice{{view}}});
      }
      continue;
    }
    ModelPage& page = session.pages[view.page];
    ++result_.restored;
    if (page.bytes == ModelPage::Bytes::kLost) problem("a lost page came back");
    expect_bytes(session.engine, view.slot, page.seed, "restored");
    page.arriving = view.slot;
    owe(session.engine, [this, id = session.id, index = view.page] { confirm(id, index); });
  }
}

void Swarm::on_lost(ModelSession& session, PageIndex page) {
  if (page >= session.pages.size()) return;
  session.pages[page].bytes = ModelPage::Bytes::kLost;
  session.pages[page].slot.reset();
  session.pages[page].arriving.reset();
}

// ---- answers
// ----------------------------------------------------------------------------------------

// A restore failed: nothing changes here. Or there is no memory for what was granted: it is void.
void Swarm::on_failed(ModelSession& session, PageIndex page) {
  if (page >= session.pages.size()) return;
  if (session.pages[page].phase < ModelPage::Phase::kSealing) session.pages.resize(page);
}

void Swarm::give_up(SessionId id, DecisionId decision) {
  ModelSession* session = session_of(id);
  if (session == nullptr || !session->engine) return;
  ModelEngine& engine = engines_.at(session->engine);
  ledger::GaveUp answer{origin(engine), id, decision, {}, {}, 0};
  std::vector<OpenUse> uses;
  for (PageIndex index = 0; index < session->pages.size(); ++index) {
    ModelPage& page = session->pages[index];
    if (page.asked != decision) continue;
    if (page.slot) uses.push_back({OpenUse::Kind::kReads, *page.slot, page.seed});
    page.asked.reset();
    page.slot.reset();
    page.arriving.reset();
    answer.pages.push_back(index);
  }
  if (answer.pages.empty()) return;
  answer.fence = fence_for(engine, std::move(uses));
  call("gave_up", std::move(answer), {});
}

void Swarm::confirm(SessionId id, PageIndex index) {
  ModelSession* session = session_of(id);
  if (session == nullptr || !session->engine || index >= session->pages.size()) return;
  ModelPage& page = session->pages[index];
  if (!page.arriving || page.asked) return;
  page.slot = std::exchange(page.arriving, std::nullopt);
  call("resident",
       ledger::Resident{
           origin(engines_.at(session->engine)), id, {index}, {page.slot->generation}, 0},
       {});
}

Fence Swarm::fence_for(ModelEngine& engine, std::vector<OpenUse> uses) {
  if (ending_ == Ending::kYes || chance(60)) {
    for (const OpenUse& use : uses) {
      if (use.kind == OpenUse::Kind::kReads) continue;
      world_.bytes().write(engine.id, use.slot, 0, pattern(use.seed)).IgnoreError();
    }
    return {};
  }
  const Fence fence = world_.fences().make(engine.id);
  engine.fences.push_back({fence, std::move(uses)});
  return fence;
}

void Swarm::signal(ModelEngine& engine, size_t which) {
  const OpenFence open = engine.fences[which];
  engine.fences.erase(engine.fences.begin() + static_cast<std::ptrdiff_t>(which));
  for (const OpenUse& use : open.uses) {
    if (use.kind == OpenUse::Kind::kWrites) {
      if (!world_.bytes().write(engine.id, use.slot, 0, pattern(use.seed)).ok()) {
        problem("an engine cannot finish writing before its fence");
      }
    }
    expect_bytes(engine.id, use.slot, use.seed, "used until its fence");
    if (use.kind == OpenUse::Kind::kReads) continue;
    for (auto& [id, session] : sessions_) {
      for (ModelPage& page : session.pages) {
        if (session.engine == engine.id && page.slot == use.slot) {
          page.phase = ModelPage::Phase::kSealed;
        }
      }
    }
  }
  world_.fences().signal(engine.id, open.fence);
}

void Swarm::run_chores(uint32_t percent) {
  for (Chore& chore : std::exchange(chores_, {})) {
    const auto engine = engines_.find(chore.engine);
    if (engine == engines_.end() || engine->second.life == ModelEngine::Life::kGone) continue;
    if (engine->second.life == ModelEngine::Life::kAlive && chance(percent)) {
      chore.work();
    } else {
      chores_.push_back(std::move(chore));
    }
  }
}

}  // namespace memdecay::sim
