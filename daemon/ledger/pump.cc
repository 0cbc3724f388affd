// Waiting requests (see pump.h). What keeps tiers at their marks is in marks.cc.
#include "daemon/ledger/pump.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/choose.h"
#include "daemon/ledger/grant.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/lookups.h"
#include "daemon/ledger/marks.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/slots.h"

namespace memdecay::ledger {
namespace {

enum class Verdict : uint8_t { kServed, kWaits, kDormant, kBudget, kQuota, kImpossible };
enum class Supply : uint8_t { kThere, kComing, kNever };

// `there`: what is left over now (negative: missing); `coming`: what is on its way. Lets more pages
// leave if both together do not do.
Supply let_leave(Context& context, const Demand& demand, int64_t there, int64_t coming) {
  if (there >= 0) return Supply::kThere;
  if (there + coming >= 0) return Supply::kComing;
  Demand missing = demand;
  missing.need = static_cast<uint32_t>(-(there + coming));
  const Choice choice = choose(context.state, missing);
  if (!choice.enough) return Supply::kNever;
  begin_leaving(
      context, choice.victims,
      absl::StrCat("needed ", missing.need, " more, ", free_slots(context.state), " slots free"),
      choice.spared);
  return Supply::kComing;
}

Verdict of(Supply supply, Verdict never) {
  return supply == Supply::kNever ? never : Verdict::kWaits;
}

// Room in the session's own budget (lossy sessions only: an exact one never gives).
Supply budget_room(Context& context, const Session& session, uint32_t need) {
  if (session.budget_pages == 0) return Supply::kThere;
  const int64_t after = static_cast<int64_t>(occupancy(session)) + need;
  const int64_t there = static_cast<int64_t>(session.budget_pages) - after;
  if (there >= 0) return Supply::kThere;
  if (session.mode == Mode::kExact) return Supply::kNever;
  return let_leave(context, {Scope::kSession, session.tenant, session.id, 0}, there,
                   views_leaving(session));
}

Supply tenant_room(Context& context, const Waiter& waiter, uint32_t need) {
  const TenantId id = waiter.tenant;
  const Tenant& tenant = context.state.tenants.at(id);
  if (tenant.options.limit_pages == 0) return Supply::kThere;
  const int64_t there = static_cast<int64_t>(tenant.options.limit_pages) - tenant.used - need;
  return let_leave(context, {Scope::kTenant, id, waiter.session, 0, waiter.op}, there,
                   slots_leaving(context.state, id));
}

Supply pool_room(Context& context, const Waiter& waiter, const Session& session, uint32_t need,
                 uint32_t promised) {
  State& state = context.state;
  const Engine* engine = find_engine(state, session.engine);
  if (engine != nullptr && engine->placement == Placement::kEngine) {
    return free_blocks(state, *engine) >= need ? Supply::kThere : Supply::kNever;
  }
  const PoolKey pool{session.tenant, session.layout.name_space};
  const int64_t there = static_cast<int64_t>(takeable(state, pool)) - promised - need;
  if (there >= 0) return Supply::kThere;
  const int64_t free = static_cast<int64_t>(free_slots(state)) - promised - need;
  const int64_t coming = static_cast<int64_t>(slots_leaving(state)) + reclaimable(state);
  const Supply supply =
      let_leave(context, {Scope::kPool, waiter.tenant, waiter.session, 0, waiter.op}, free, coming);
  if (supply == Supply::kNever) return supply;
  // Slots are or become free, but in slabs of another pool.
  if (supply == Supply::kThere) reclaim_foreign(context, pool, static_cast<uint32_t>(-there));
  return takeable(state, pool) >= promised + need ? Supply::kThere : Supply::kComing;
}

Verdict try_extend(Context& context, Waiter& waiter, uint32_t promised) {
  Session* session = find_session(context.state, waiter.session);
  if (session == nullptr) return Verdict::kImpossible;
  const Supply budget = budget_room(context, *session, waiter.need);
  if (budget == Supply::kNever) return Verdict::kBudget;
  const Supply tenant = tenant_room(context, waiter, waiter.need);
  if (tenant == Supply::kNever) return Verdict::kQuota;
  const Supply pool = pool_room(context, waiter, *session, waiter.need, promised);
  if (pool != Supply::kThere) return of(pool, Verdict::kImpossible);
  if (budget != Supply::kThere || tenant != Supply::kThere) return Verdict::kWaits;
  if (!blocks_free(context.state, *session, waiter)) return Verdict::kImpossible;
  grant(context, *session, waiter);
  return Verdict::kServed;
}

Verdict try_op(Context& context, Waiter& waiter, uint32_t promised) {
  State& state = context.state;
  const auto found = state.ops.find(waiter.op);
  if (found == state.ops.end() || found->second.admitted) return Verdict::kServed;
  widen_wake(context, found->second);
  const std::optional<uint32_t> need = op_need(state, found->second);
  if (!need.has_value()) return Verdict::kDormant;
  waiter.need = *need;
  const Session& session = *state.sessions.at(waiter.session);
  // Pages that only have to be mapped again count in the budget too.
  const auto pages = static_cast<uint32_t>(found->second.pages.size());
  const Supply budget = budget_room(context, session, pages);
  if (budget == Supply::kNever && session.mode == Mode::kLossy &&
      found->second.purpose == RestoreOp::Purpose::kWake) {
    give_way(context, waiter.op);
    return Verdict::kWaits;
  }
  if (budget != Supply::kThere) return of(budget, Verdict::kDormant);
  const Supply tenant = tenant_room(context, waiter, *need);
  if (tenant != Supply::kThere) return of(tenant, Verdict::kDormant);
  const Supply pool = pool_room(context, waiter, session, *need, promised);
  if (pool != Supply::kThere) return of(pool, Verdict::kDormant);
  // What left for it may have ended the op, or been its own.
  const auto again = state.ops.find(waiter.op);
  if (again == state.ops.end()) return Verdict::kServed;
  if (op_need(state, again->second) != need) return Verdict::kWaits;
  admit_op(context, again->second);
  return Verdict::kServed;
}

Verdict try_pressure(Context& context, Waiter& waiter) {
  State& state = context.state;
  const int64_t there = static_cast<int64_t>(free_slots(state)) - waiter.need;
  const int64_t coming = static_cast<int64_t>(slots_leaving(state)) + reclaimable(state);
  const Supply supply = let_leave(context, {Scope::kPool, waiter.tenant, {}, 0}, there, coming);
  if (supply == Supply::kNever) return Verdict::kImpossible;
  if (free_slots(state) < waiter.need) return Verdict::kWaits;
  reply(context, waiter.request, PressureReply{free_slots(state)});
  return Verdict::kServed;
}

Verdict attempt(Context& context, Waiter& waiter, uint32_t promised) {
  // Letting pages leave may free slots at once: a second look then serves.
  constexpr int kLooks = 3;
  Verdict verdict = Verdict::kWaits;
  for (int look = 0; look < kLooks && verdict == Verdict::kWaits; ++look) {
    switch (waiter.kind) {
      case Waiter::Kind::kExtend:
        verdict = try_extend(context, waiter, promised);
        break;
      case Waiter::Kind::kPressure:
        verdict = try_pressure(context, waiter);
        break;
      case Waiter::Kind::kOp:
        verdict = try_op(context, waiter, promised);
        break;
    }
  }
  return verdict;
}

absl::Status cannot(const State& state, const Waiter& waiter, Verdict verdict) {
  const std::string asked = absl::StrCat(waiter.need, " pages");
  if (verdict == Verdict::kQuota) {
    const Tenant& tenant = state.tenants.at(waiter.tenant);
    return make_error(ErrorCode::kQuota, asked,
                      absl::StrCat("tenant ", tenant.options.name, " uses ", tenant.used, " of ",
                                   tenant.options.limit_pages),
                      "park or close a session of this tenant, or raise its limit");
  }
  if (verdict == Verdict::kBudget) {
    const Session& session = *state.sessions.at(waiter.session);
    return make_error({.code = ErrorCode::kResourceExhausted,
                       .asked = asked,
                       .there = absl::StrCat("session ", session.name, " has ", occupancy(session),
                                             " of its budget of ", session.budget_pages, " pages"),
                       .todo = "raise its budget, unpin pages, or make it lossy",
                       .retry_after_ms = 50});
  }
  return make_error({.code = ErrorCode::kResourceExhausted,
                     .asked = asked,
                     .there = who_holds(state),
                     .todo = "park or close a session, unpin pages, or raise device.pages",
                     .retry_after_ms = 50});
}

}  // namespace

void pump(Context& context) {
  State& state = context.state;
  if (!state.acquires.empty()) recheck_acquires(context);
  uint32_t promised = 0;
  std::deque<Waiter> waiting;
  std::swap(waiting, state.waiters);
  std::deque<Waiter> still;
  for (Waiter& waiter : waiting) {
    const Verdict verdict = attempt(context, waiter, promised);
    if (verdict != Verdict::kWaits && verdict != Verdict::kDormant) {
      cancel_timer(state, Timer::Kind::kWaiter, waiter.deadline, waiter.request.value);
    }
    switch (verdict) {
      case Verdict::kServed:
        break;
      case Verdict::kWaits:
        if (waiter.kind != Waiter::Kind::kPressure) promised += waiter.need;
        still.push_back(std::move(waiter));
        break;
      case Verdict::kDormant:
        still.push_back(std::move(waiter));
        break;
      case Verdict::kBudget:
      case Verdict::kQuota:
      case Verdict::kImpossible:
        refuse(context, waiter.request, cannot(state, waiter, verdict));
        break;
    }
  }
  // Serving may have made new ones wait: they come after those who were there.
  for (Waiter& waiter : state.waiters) still.push_back(std::move(waiter));
  state.waiters = std::move(still);
  keep_marks(context);
}

void refuse_extends(Context& context, const Session& session, const absl::Status& status) {
  std::deque<Waiter> still;
  for (Waiter& waiter : context.state.waiters) {
    if (waiter.session != session.id || waiter.kind != Waiter::Kind::kExtend) {
      still.push_back(std::move(waiter));
      continue;
    }
    cancel_timer(context.state, Timer::Kind::kWaiter, waiter.deadline, waiter.request.value);
    refuse(context, waiter.request, status);
  }
  context.state.waiters = std::move(still);
}

void waiter_overdue(Context& context, RequestId request) {
  auto& waiters = context.state.waiters;
  const auto found = std::find_if(waiters.begin(), waiters.end(), [request](const Waiter& waiter) {
    return waiter.request == request && waiter.kind != Waiter::Kind::kOp;
  });
  if (found == waiters.end()) return;
  const Waiter waiter = std::move(*found);
  waiters.erase(found);
  refuse(context, request,
         make_error({.code = ErrorCode::kResourceExhausted,
                     .asked = absl::StrCat(waiter.need, " pages"),
                     .there = absl::StrCat("engines have not given up in time what they were asked "
                                           "for; ",
                                           who_holds(context.state)),
                     .todo = "try again; look after engines that do not answer",
                     .retry_after_ms = 100}));
}

}  // namespace memdecay::ledger
