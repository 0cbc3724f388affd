// See regret.h.
#include "daemon/ledger/regret.h"

#include "absl/strings/str_cat.h"
#include "daemon/ledger/pages.h"
#include "proto/contract/text.h"

namespace memdecay::ledger {
namespace {

bool by_choice(Reason why) {
  return why == Reason::kScore || why == Reason::kBudget || why == Reason::kPoolPressure ||
         why == Reason::kTenantOverReservation;
}

}  // namespace

void note_left(Context& context, ViewRef ref, Reason why) {
  State& state = context.state;
  const Session& session = *state.sessions.at(ref.session);
  Departure& left = view_of(state, ref).departure;
  left.why = why;
  left.open = by_choice(why);
  left.idle = !is_running(session);
  left.step = session.step;
  left.when = context.now;
  if (left.open) ++state.tallies.regions[main_region(session, ref.page)].evictions;
}

void note_wanted(Context& context, ViewRef ref) {
  State& state = context.state;
  const Session& session = *state.sessions.at(ref.session);
  Departure& left = view_of(state, ref).departure;
  if (!left.open) return;
  left.open = false;
  const bool soon = left.idle ? context.now - left.when <= state.options.regret
                              : session.step - left.step <= state.options.regret_steps;
  if (!soon) {
    left.regrets = 0;
    return;
  }
  const RegionId region = main_region(session, ref.page);
  RegionTally& tally = state.tallies.regions[region];
  ++(left.idle ? tally.idle_regrets : tally.regrets);
  count(state, left.idle ? "regret_idle_total" : "regret_total",
        absl::StrCat("region=", as_absl(region_name(region)),
                     "|policy=", session.policy->options().name));
  if (++left.regrets < 2) return;
  ++state.tallies.thrashes;
  count(state, "thrash_total");
}

void note_kept(State& state, ViewRef ref) {
  Departure& left = view_of(state, ref).departure;
  if (!left.open) return;
  left.open = false;
  const Session& session = *state.sessions.at(ref.session);
  --state.tallies.regions[main_region(session, ref.page)].evictions;
}

}  // namespace memdecay::ledger
