// Which pages leave the device: the order of victims across sessions and inside one, and for every
// page that stays the reason why. Pure look-ups; leave.h acts.
//
// Order for a pool: contents that no engine maps (ranks.cc: the worthless, twins, entries, those of
// ended sessions; inside one by priority and uses), then sessions
// that do not compute (tenant and session priority, state, longest idle; inside one by its policy),
// then lossy sessions that do (priority, then score). Tenants above their reservation give before
// the one that asks takes from itself, the others never. An exact session that computes gives
// nothing. Nothing is chosen if not enough can be.
// Thread: the ledger's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/ledger/context.h"

namespace memdecay::ledger {

enum class Scope : uint8_t {
  kPool,     // slots for anybody
  kTenant,   // slots of one tenant, which is at its limit
  kSession,  // room in one session's budget: its own views
};

struct Demand {
  Scope scope = Scope::kPool;
  TenantId tenant;    // who asks
  SessionId session;  // kSession: whose; kPool: whose pages are wanted, not to be robbed
  uint32_t need = 0;  // pages
  OpId op;            // a wake-up that asks: sessions that wait longer to wake are spared
};

struct Victim {
  ContentId content;
  std::optional<ViewRef> view;  // kSession, kAdmin: only this view is given up
  std::optional<ViewRef> by;    // the page by which it was chosen
  Reason reason = Reason::kPoolPressure;
  double score = 0;
  uint32_t room = 0;  // so much more room, and it would have stayed; 0: not known
};

// What stayed, in words: the page with the next score, and before it one with a lower score that
// something else protects. `score` is the next one's, where the victims can be compared with it.
struct Spared {
  std::string text;
  std::optional<double> score;
};

struct Choice {
  std::vector<Victim> victims;  // may be more than needed: atomic spans go whole
  bool enough = false;
  Spared spared;
};

Choice choose(State& state, const Demand& demand);

// Why the page would not be chosen now, in that scope; empty: it could be.
std::vector<Reason> spare_reasons(const State& state, ViewRef ref, Scope scope);

// Slots on their way to being free: asked and not late, given up, or being copied out.
uint32_t slots_leaving(const State& state);
uint32_t slots_leaving(const State& state, TenantId tenant);
// Pages of one session on their way out of its budget.
uint32_t views_leaving(const Session& session);

// "session a: 6 pages exact_mode_running, …": who holds the slots that cannot be had.
std::string who_holds(const State& state);

}  // namespace memdecay::ledger
