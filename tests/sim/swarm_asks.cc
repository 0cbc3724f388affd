// Sharing, and what operators and engines ask in passing. See swarm.h.
#include <utility>

#include "proto/contract/page_key.h"
#include "tests/sim/swarm.h"

namespace memdecay::sim {

void Swarm::acquire() {
  ModelSession* session = pick_session();
  if (session == nullptr || session->sealed() != session->pages.size()) return;
  if (session->pages.empty()) session->document = below(kSwarmDocuments);
  const uint32_t pages = 1 + below(8);
  ledger::Acquire event{.origin = origin(engines_.at(session->engine)),
                        .layout = swarm_layout(),
                        .session = session->id};
  std::optional<PageKey> parent;
  for (uint32_t i = 0; i < pages; ++i) {
    const std::vector<TokenId> tokens = page_of(session->document, i);
    parent = page_key(event.layout.name_space, parent, tokens);
    event.keys.push_back(*parent);
    event.tokens.insert(event.tokens.end(), tokens.begin(), tokens.end());
  }
  if (chance(30)) {
    call("lookup", ledger::Lookup{event.origin, event.layout, event.keys, event.tokens}, {});
    return;
  }
  call(
      "acquire", std::move(event),
      [this, id = session->id, engine = session->engine](const ledger::Reply& reply) {
        const auto& acquired = std::get<ledger::AcquireReply>(reply.body);
        if (acquired.lease) leases_.emplace_back(acquired.lease, engines_.at(engine).tenant);
        ModelSession* still = session_of(id);
        if (still == nullptr) return;
        // An engine that has let go meanwhile sees nothing, but the pages are the session's.
        const bool sees = still->engine == engine;
        for (const ledger::PageView& view : acquired.views) {
          if (view.page != still->pages.size()) problem("an acquired page is not at the end");
          ModelPage page{.phase = ModelPage::Phase::kSealed};
          page.tokens = page_of(still->document, view.page);
          page.seed = extend_chain(still->chain(), page.tokens);
          if (sees && view.state == PageState::kMapped) page.slot = view.slot;
          still->pages.push_back(std::move(page));
        }
        result_.acquired += acquired.views.size();
      },
      session->id);
}

// ---- what anybody asks
// ------------------------------------------------------------------------------

void Swarm::pressure() {
  call("pressure", ledger::Pressure{operator_of({1 + below(2)}), 1 + below(5)}, {});
  if (leases_.empty()) return;
  const auto [lease, tenant] = leases_.back();
  call("release", ledger::Release{operator_of(tenant), lease}, {});
  leases_.pop_back();
}

// Mostly what can leave: sealed pages of sessions that do not compute or may have holes.
void Swarm::evict() {
  ModelSession* session = pick_session();
  if (session == nullptr) return;
  const bool gives = session->mode == Mode::kLossy || session->works == ModelSession::Works::kNo;
  if (!gives && chance(90)) return;
  const size_t end = chance(90) ? session->sealed() : session->pages.size();
  if (end == 0) return;
  ledger::EvictPages event{operator_of(session->tenant), session->id, {}};
  for (uint32_t i = 1 + below(4); i > 0; --i) event.pages.push_back(below(end));
  call("evict", std::move(event), {});
}

// Mostly what is away.
void Swarm::restore() {
  ModelSession* session = pick_session();
  if (session == nullptr) return;
  ledger::RestorePages event{operator_of(session->tenant), session->id, {}, {}};
  const size_t end = chance(90) ? session->sealed() : session->pages.size();
  for (PageIndex page = 0; page < end; ++page) {
    if (chance(session->pages[page].slot ? 5 : 60)) event.pages.push_back(page);
  }
  if (event.pages.empty() && chance(90)) return;
  const RequestId request = event.origin.request;
  call("restore", std::move(event), {});
  if (chance(15)) call("cancel", ledger::CancelRestore{operator_of(session->tenant), request}, {});
}

void Swarm::drop() {
  ModelSession* session = pick_session();
  if (session == nullptr || session->pages.empty()) return;
  ledger::Drop event{.origin = operator_of(session->tenant), .session = session->id};
  event.pages.push_back(below(session->pages.size()));
  if (chance(50)) event.reach = ledger::Drop::Reach::kAllTiers;
  call("drop", std::move(event), {});
}

void Swarm::observe() {
  ModelSession* session = pick_session();
  if (session == nullptr) return;
  session->step += 1 + below(20);
  ledger::Observe event{.origin = origin(engines_.at(session->engine)), .session = session->id};
  event.step = session->step;
  event.queries = 1;
  event.tail = 0.25;
  event.rest = 0.75;
  for (PageIndex page = 0; page < session->pages.size() && event.rest > 0.1; ++page) {
    if (session->pages[page].phase != ModelPage::Phase::kSealed || chance(50)) continue;
    const double mass = 0.05 * (1 + below(3));
    if (mass > event.rest) break;
    event.masses.emplace_back(page, mass);
    event.rest -= mass;
  }
  call("observe", std::move(event), {});
}

void Swarm::mark() {
  ModelSession* session = pick_session();
  if (session == nullptr || session->pages.empty()) return;
  const ledger::Origin from = origin(engines_.at(session->engine));
  const uint32_t first = below(session->pages.size());
  const ledger::Span span{first * kSwarmPageTokens, (first + 1 + below(2)) * kSwarmPageTokens - 1};
  switch (below(5)) {
    case 0:
      return call(
          "tag",
          ledger::Tag{from, session->id, {{span, static_cast<RegionId>(below(kBuiltInRegions))}}},
          {});
    case 1:
      return call("hint", ledger::Hint{from, session->id, span, 0.9}, {});
    case 2:
      return call("pin", ledger::Pin{from, session->id, first, 1, Duration::from_seconds(3)}, {});
    case 3:
      return call("unpin", ledger::Unpin{from, session->id, first, 1}, {});
    default:
      return call("supersede", ledger::Supersede{from, session->id, span}, {});
  }
}

void Swarm::budget() {
  ModelSession* session = pick_session();
  if (session == nullptr) return;
  const ledger::Origin from = origin(engines_.at(session->engine));
  if (chance(50)) {
    return call("set_budget", ledger::SetBudget{from, session->id, below(10)}, {});
  }
  call("set_mode", ledger::SetMode{from, session->id, chance(50) ? Mode::kLossy : Mode::kExact},
       {});
}

}  // namespace memdecay::sim
