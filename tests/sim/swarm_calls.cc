// What the swarm's engines and operators ask. See swarm.h. A call that makes no sense just now is
// not made; one that the ledger refuses changes nothing in the model.
#include <algorithm>
#include <utility>

#include "proto/contract/error.h"
#include "tests/sim/swarm.h"

namespace memdecay::sim {
namespace {

constexpr size_t kMostEngines = 4;
constexpr size_t kMostSessions = 7;

RequestId request_of(const ledger::Event& event) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.origin; }) return one.origin.request;
        return RequestId{};
      },
      event);
}

}  // namespace

ledger::Origin Swarm::origin(const ModelEngine& engine) {
  return {world_.reactor().next_request(), engine.tenant, engine.id, engine.epoch};
}

void Swarm::call(const char* name, ledger::Event event, Answer answer, SessionId blocks,
                 Answer refused) {
  waiting_[request_of(event)] = {name, std::move(answer), std::move(refused), blocks};
  if (ModelSession* session = session_of(blocks)) session->turn = ModelSession::Turn::kWaits;
  if (world_.reactor().post_stream(std::move(event)) == reactor::Posted::kFull) {
    problem("the stream lane is full");
  }
}

// ---- engines
// ----------------------------------------------------------------------------------------

void Swarm::attach() {
  const auto alive = std::count_if(engines_.begin(), engines_.end(), [](const auto& one) {
    return one.second.life != ModelEngine::Life::kGone;
  });
  if (static_cast<size_t>(alive) >= kMostEngines) return;
  const TenantId tenant{1 + below(2)};
  call("attach", ledger::Attach{operator_of(tenant), "engine"},
       [this, tenant](const ledger::Reply& reply) {
         const auto& attached = std::get<ledger::AttachReply>(reply.body);
         engines_[attached.engine] = {
             .id = attached.engine, .tenant = tenant, .epoch = attached.epoch};
       });
}

void Swarm::disconnect() {
  ModelEngine* engine = pick_engine();
  if (engine == nullptr || chance(50)) return;
  engine->life = ModelEngine::Life::kDisconnected;
  world_.reactor().complete(ledger::Disconnected{engine->id});
}

// The process is certainly gone; until now it could still write what it was granted.
void Swarm::gone(ModelEngine& engine) {
  for (auto& [id, session] : sessions_) {
    if (session.engine != engine.id) continue;
    for (const ModelPage& page : session.pages) {
      if (page.phase >= ModelPage::Phase::kSealing || !page.slot) continue;
      world_.bytes().write(engine.id, *page.slot, 0, pattern(++nonce_)).IgnoreError();
    }
    forget_mappings(session);
  }
  engine.life = ModelEngine::Life::kGone;
  engine.fences.clear();
  world_.fences().engine_gone(engine.id);
  world_.bytes().unmap_all(engine.id);
  world_.reactor().complete(ledger::EngineGone{engine.id});
}

void Swarm::end_engine() {
  for (auto& [id, engine] : engines_) {
    if (engine.life != ModelEngine::Life::kDisconnected) continue;
    if (chance(50)) return gone(engine);
    call("reattach", ledger::Reattach{origin(engine)}, [this](const ledger::Reply& reply) {
      const auto& attached = std::get<ledger::AttachReply>(reply.body);
      ModelEngine& back = engines_.at(attached.engine);
      if (back.life == ModelEngine::Life::kGone) return;
      back.epoch = attached.epoch;
      back.life = ModelEngine::Life::kAlive;
    });
    return;
  }
}

void Swarm::leave() {
  ModelEngine* engine = pick_engine();
  if (engine == nullptr) return;
  while (!engine->fences.empty()) signal(*engine, 0);
  for (auto& [id, session] : sessions_) {
    if (session.engine == engine->id) forget_mappings(session);
  }
  engine->life = ModelEngine::Life::kGone;
  call("leave", ledger::Leave{origin(*engine)},
       [this, id = engine->id](const ledger::Reply&) { world_.bytes().unmap_all(id); });
}

// ---- sessions
// ---------------------------------------------------------------------------------------

void Swarm::open() {
  ModelEngine* engine = pick_engine();
  if (engine == nullptr || sessions_.size() >= kMostSessions) return;
  ledger::OpenSession event{.origin = origin(*engine), .layout = swarm_layout()};
  event.mode = chance(40) ? Mode::kLossy : Mode::kExact;
  if (chance(30)) event.budget_pages = 3 + below(6);
  event.priority = static_cast<int32_t>(below(3));
  ModelSession made{.tenant = engine->tenant,
                    .engine = engine->id,
                    .mode = event.mode,
                    .document = below(kSwarmDocuments)};
  call("open", std::move(event), [this, made](const ledger::Reply& reply) {
    ModelSession session = made;
    session.id = std::get<ledger::SessionReply>(reply.body).session;
    if (engines_.at(session.engine).life == ModelEngine::Life::kGone) session.engine = {};
    sessions_[session.id] = std::move(session);
  });
}

void Swarm::grow() {
  ModelSession* session = pick_session();
  if (session == nullptr || session->pages.size() > 10) return;
  if (session->sealed() < session->pages.size() && chance(80)) return;
  if (session->works == ModelSession::Works::kNo && chance(95)) return;
  const uint32_t pages = 1 + below(2);
  call(
      "extend", ledger::Extend{origin(engines_.at(session->engine)), session->id, pages, {}},
      [this, id = session->id, engine = session->engine](const ledger::Reply& reply) {
        ModelSession* still = session_of(id);
        if (still == nullptr || still->engine != engine) return;
        for (const ledger::PageView& view : std::get<ledger::GrantReply>(reply.body).pages) {
          if (view.page != still->pages.size()) problem("a grant is not at the session's end");
          ModelPage page;
          page.slot = view.slot;
          const bool writable =
              world_.bytes().mapping(engine, view.slot.slab) == Access::kReadWrite;
          if (!writable && options_.faults == SwarmOptions::Faults::kNone) {
            problem("a granted slot is not writable");
          }
          still->pages.push_back(std::move(page));
        }
      },
      session->id);
}

// Writes what was granted: garbage until the seal's fence, as a real engine's half-done step.
void Swarm::write() {
  ModelSession* session = pick_session();
  if (session == nullptr) return;
  bool any = false;
  const bool tainted = session->tainted();
  uint64_t chain = session->tenant.value;
  for (size_t index = 0; index < session->pages.size(); ++index) {
    ModelPage& page = session->pages[index];
    if (page.phase == ModelPage::Phase::kGranted) {
      page.tokens = page_of(session->document, index);
      page.seed = extend_chain(chain, page.tokens);
      if (tainted) {
        page.purity = ModelPage::Purity::kTainted;
        page.seed ^= ++nonce_ << 20;
      }
      page.phase = ModelPage::Phase::kWritten;
      world_.bytes().write(session->engine, *page.slot, 0, pattern(++nonce_)).IgnoreError();
      any = true;
    }
    chain = extend_chain(chain, page.tokens);
  }
  if (!any) return;
  const auto position = static_cast<uint32_t>(session->pages.size()) * kSwarmPageTokens;
  call("written", ledger::Written{origin(engines_.at(session->engine)), session->id, position}, {},
       session->id);
}

void Swarm::seal() {
  ModelSession* session = pick_session();
  if (session == nullptr) return;
  ModelEngine& engine = engines_.at(session->engine);
  ledger::Seal event{.origin = origin(engine), .session = session->id};
  std::vector<OpenUse> uses;
  event.first_page = static_cast<PageIndex>(session->sealed());
  const bool checksums = chance(50);
  for (size_t index = event.first_page; index < session->pages.size(); ++index) {
    const ModelPage& page = session->pages[index];
    if (page.phase != ModelPage::Phase::kWritten || (event.pages > 0 && chance(30))) break;
    event.tokens.insert(event.tokens.end(), page.tokens.begin(), page.tokens.end());
    if (checksums) event.checksums.push_back(checksum_of_pattern(page.seed));
    uses.push_back({OpenUse::Kind::kWrites, *page.slot, page.seed});
    ++event.pages;
  }
  if (event.pages == 0) return;
  const auto end = session->pages.begin() + event.first_page + event.pages;
  const bool tainted = std::any_of(session->pages.begin(), end, [](const ModelPage& page) {
    return page.purity == ModelPage::Purity::kTainted;
  });
  event.claim = tainted ? ledger::Seal::Claim::kHoles : ledger::Seal::Claim::kNone;
  event.fence = fence_for(engine, std::move(uses));
  const auto phase =
      event.fence.value == 0 ? ModelPage::Phase::kSealed : ModelPage::Phase::kSealing;
  for (uint32_t i = 0; i < event.pages; ++i) session->pages[event.first_page + i].phase = phase;
  call("seal", std::move(event), {}, session->id, [this](const ledger::Reply& reply) {
    problem("a seal was refused: " + reply.status.ToString());
  });
}

void Swarm::fork() {
  ModelSession* session = pick_session();
  if (session == nullptr || sessions_.size() >= kMostSessions) return;
  ModelSession made = *session;
  if (chance(50)) made.document = below(kSwarmDocuments);
  call(
      "fork",
      ledger::ForkSession{origin(engines_.at(session->engine)), session->id,
                          "fork-" + std::to_string(++nonce_)},
      [this, made](const ledger::Reply& reply) {
        ModelSession session_made = made;
        session_made.turn = ModelSession::Turn::kFree;
        const auto& forked = std::get<ledger::SessionReply>(reply.body);
        session_made.id = forked.session;
        if (engines_.at(made.engine).life == ModelEngine::Life::kGone) {
          forget_mappings(session_made);
        } else {
          adopt(session_made, forked.pages);
        }
        sessions_[forked.session] = std::move(session_made);
      },
      session->id);
}

void Swarm::adopt(ModelSession& session, const std::vector<ledger::PageView>& views) {
  if (views.size() > session.pages.size()) return problem("a session came with pages nobody wrote");
  session.pages.resize(views.size());
  for (size_t i = 0; i < views.size(); ++i) {
    ModelPage& page = session.pages[i];
    page.phase = ModelPage::Phase::kSealed;
    page.asked.reset();
    page.slot.reset();
    const bool exact = views[i].exactness == ledger::PageView::Exactness::kExact;
    if (exact && page.purity == ModelPage::Purity::kTainted) {
      problem("a page computed with holes is called exact");
    }
    if (views[i].state == PageState::kMapped) page.slot = views[i].slot;
  }
}

void Swarm::truncate() {
  ModelSession* session = pick_session();
  if (session == nullptr || session->pages.empty()) return;
  const uint32_t pages = below(session->pages.size()) + below(2);
  const uint32_t tokens = pages * kSwarmPageTokens + below(kSwarmPageTokens);
  session->pages.resize(std::min<size_t>(pages, session->pages.size()));
  const ModelEngine& engine = engines_.at(session->engine);
  call("truncate", ledger::Truncate{origin(engine), session->id, tokens}, {}, session->id);
}

void Swarm::park() {
  ModelSession* session = pick_session();
  if (session == nullptr || (session->sealed() < 2 && chance(80))) return;
  constexpr SessionState kStates[] = {SessionState::kWaitingTool, SessionState::kWaitingUser,
                                      SessionState::kPreempted};
  session->works = ModelSession::Works::kNo;
  call("park", ledger::Park{origin(engines_.at(session->engine)), session->id, kStates[below(3)]},
       {});
}

void Swarm::unpark() {
  ModelSession* session = pick_session();
  if (session == nullptr) return;
  if (session->works == ModelSession::Works::kYes && chance(70)) return;
  const ModelEngine& engine = engines_.at(session->engine);
  if (chance(20)) {
    call("repair", ledger::Repair{origin(engine), session->id}, {});
  } else {
    call("unpark", ledger::Unpark{origin(engine), session->id}, {});
  }
}

void Swarm::close() {
  ModelSession* session = pick_session();
  if (session == nullptr) return;
  ModelEngine& engine = engines_.at(session->engine);
  std::vector<OpenUse> uses;
  for (const ModelPage& page : session->pages) {
    if (page.slot && page.phase == ModelPage::Phase::kSealed) {
      uses.push_back({OpenUse::Kind::kReads, *page.slot, page.seed});
    }
  }
  ledger::CloseSession event{origin(engine), session->id};
  event.what = chance(50) ? ledger::CloseSession::What::kKeep : ledger::CloseSession::What::kForget;
  event.fence = fence_for(engine, std::move(uses));
  const SessionId id = session->id;
  const bool forget = event.what == ledger::CloseSession::What::kForget;
  forget_mappings(*session);
  if (forget) sessions_.erase(id);
  call("close", std::move(event), {}, forget ? SessionId{} : id);
}

void Swarm::resume() {
  ModelEngine* engine = pick_engine();
  if (engine == nullptr) return;
  std::vector<ModelSession*> others;
  for (auto& [id, session] : sessions_) {
    const bool orphan = !session.engine && session.turn == ModelSession::Turn::kFree;
    const bool own = session.tenant == engine->tenant;
    const bool robs = own && session.engine != engine->id && chance(2);
    if ((orphan && (own || chance(10))) || robs) others.push_back(&session);
  }
  if (others.empty()) return;
  ModelSession& session = *others[below(others.size())];
  ledger::ResumeSession event{origin(*engine), session.id, swarm_layout()};
  if (session.engine) event.steal = ledger::ResumeSession::Steal::kYes;
  forget_mappings(session);  // a robbed engine hears that it lost it
  session.engine = engine->id;
  call(
      "resume", std::move(event),
      [this, id = session.id, by = engine->id](const ledger::Reply& reply) {
        ModelSession* resumed = session_of(id);
        if (resumed == nullptr || resumed->engine != by) return;
        if (resumed->tenant != engines_.at(by).tenant) problem("a session changed its tenant");
        adopt(*resumed, std::get<ledger::SessionReply>(reply.body).pages);
      },
      session.id,
      [this, id = session.id, own = session.tenant == engine->tenant](const ledger::Reply& reply) {
        ModelSession* refused = session_of(id);
        if (refused == nullptr) return;
        forget_mappings(*refused);
        const bool gone = error_code(reply.status) == ErrorCode::kUnknownSession;
        if (gone && own) sessions_.erase(id);
      });
}

}  // namespace memdecay::sim
