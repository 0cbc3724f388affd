// What happens to the swarm: time, fences, held and lost copies, damage, refused memory. See
// swarm.h.
#include "daemon/ledger/report.h"
#include "proto/contract/error.h"
#include "tests/sim/swarm.h"

namespace memdecay::sim {

void Swarm::advance() {
  constexpr int64_t kMilliseconds[] = {1, 20, 300, 2500, 6000};
  advance_by(Duration::from_milliseconds(kMilliseconds[below(5)]));
}

void Swarm::signal_some() {
  for (auto& [id, engine] : engines_) {
    if (engine.life == ModelEngine::Life::kGone) continue;
    while (!engine.fences.empty() && chance(60)) signal(engine, below(engine.fences.size()));
  }
}

void Swarm::hold_some() {
  const std::vector<ledger::StartCopy> held = world_.gate().held();
  if (!held.empty() && chance(60)) {
    const ContentId content = held[below(held.size())].content;
    if (chance(30)) {
      world_.gate().fail(content, make_error(ErrorCode::kUnavailable, "a copy", "told to fail"));
    } else {
      world_.gate().finish(content);
    }
    return;
  }
  const ModelSession* session = pick_session();
  if (session == nullptr) return;
  const auto pages = ledger::report_pages(world_.ledger(), session->id);
  if (!pages.ok() || pages->empty()) return;
  const ContentId content = (*pages)[below(pages->size())].content;
  if (content) world_.gate().hold(content, static_cast<ledger::CopyKind>(below(4)));
}

void Swarm::damage() {
  const std::vector<ContentId> contents = world_.bytes().host_contents();
  if (contents.empty()) return;
  const ContentId content = contents[below(contents.size())];
  switch (below(3)) {
    case 0:
      world_.bytes().flip_host(content, below(kSwarmPageBytes * 8));
      return;
    case 1:
      world_.bytes().zero_host(content);
      return;
    default:
      world_.bytes().unlink_host(content);
      return;
  }
}

void Swarm::refuse_memory() {
  using Memory = support::CopyGate::Memory;
  world_.gate().memory(chance(30) ? Memory::kRefused : Memory::kThere,
                       chance(30) ? Memory::kRefused : Memory::kThere);
}

}  // namespace memdecay::sim
