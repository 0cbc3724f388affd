// The order of victims (see choose.h).
#include "daemon/ledger/choose.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/text.h"

namespace memdecay::ledger {
namespace {

// State of one choice: what was taken so far, and how much more is needed.
struct Choosing {
  State& state;
  const Demand& demand;
  Choice choice;
  uint32_t taken = 0;
  absl::flat_hash_set<ContentId> contents;
  absl::btree_map<TenantId, uint32_t> by_tenant;  // taken, and on their way already

  bool done() const { return taken >= demand.need; }
  void next_is(std::string text, std::optional<double> score) {
    if (choice.spared.text.empty()) choice.spared = {std::move(text), score};
  }

  Spared guarded;  // the lowest page that something protects
};

std::string page_text(const Session& session, PageIndex page, double score) {
  return absl::StrCat("session ", session.name, " page ", page, ": score ", score);
}

enum class Pass : uint8_t { kAboveReservation, kOwn };

// Whether the tenant may give one more page in this pass.
bool tenant_gives(const Choosing& choosing, TenantId tenant, Pass pass) {
  const Demand& demand = choosing.demand;
  if (demand.scope == Scope::kTenant) return tenant == demand.tenant;
  const Tenant& row = choosing.state.tenants.at(tenant);
  if (pass == Pass::kOwn) return tenant == demand.tenant;
  return row.used > row.reservation_pages + choosing.by_tenant.at(tenant);
}

void take(Choosing& choosing, Victim victim) {
  if (!choosing.contents.insert(victim.content).second) return;
  ++choosing.taken;
  const Content& content = *choosing.state.contents.at(victim.content);
  ++choosing.by_tenant[content.tenant];
  choosing.choice.victims.push_back(std::move(victim));
}

// What the decision says: whose need it was.
Reason why(const Choosing& choosing, TenantId victim) {
  const Demand& demand = choosing.demand;
  if (demand.scope == Scope::kSession) return Reason::kBudget;
  const auto asks = choosing.state.tenants.find(demand.tenant);
  if (asks == choosing.state.tenants.end() || victim == demand.tenant) {
    return Reason::kPoolPressure;
  }
  const Tenant& tenant = asks->second;
  return tenant.used < tenant.reservation_pages ? Reason::kTenantOverReservation
                                                : Reason::kPoolPressure;
}

// Why a page that no engine maps stays; nothing: it may go.
std::optional<Reason> entry_spared(const State& state, const Content& content, SessionId asks) {
  if (content.leases > 0) return Reason::kLeased;
  if (content.copy || content.open_fences > 0 || content.store_failed) return Reason::kInUse;
  for (const ViewRef& ref : content.views) {
    if (view_of(state, ref).pinned) return Reason::kPinned;
    if (ref.session == asks) return Reason::kInUse;  // it wants this very page
  }
  return std::nullopt;
}

void count_skipped(State& state, Reason reason) {
  std::string labels("reason=");
  count(state, "evict_skipped_total", labels.append(reason_name(reason)));
}

void take_entry(Choosing& choosing, Pass pass, const Content& content) {
  if (choosing.contents.contains(content.id)) return;
  if (const auto reason = entry_spared(choosing.state, content, choosing.demand.session)) {
    count_skipped(choosing.state, *reason);
    return;
  }
  if (!tenant_gives(choosing, content.tenant, pass)) {
    count_skipped(choosing.state, Reason::kReservation);
    return;
  }
  Victim victim{.content = content.id, .reason = why(choosing, content.tenant)};
  if (!content.views.empty()) victim.by = content.views.front();
  take(choosing, std::move(victim));
}

void take_unreferenced(Choosing& choosing, Pass pass) {
  const State& state = choosing.state;
  if (choosing.done()) return;
  state.unreferenced.visit(tier_h(state, Held::kDevice), [&](const Rank& rank) {
    take_entry(choosing, pass, *state.contents.at(ContentId{rank.name}));
    return choosing.done() ? retention::Visit::kEnough : retention::Visit::kGoOn;
  });
}

// Takes the page, or the whole atomic span that it is in.
void take_page(Choosing& choosing, const Session& session, const policy::Victim& page,
               Reason reason) {
  const auto span = atomic_pages(session, page.page);
  const PageIndex first = span.has_value() ? span->first : page.page;
  const PageIndex last = span.has_value() ? span->second : page.page;
  for (PageIndex at = first; at <= last && at < session.sealed_pages; ++at) {
    const View& view = session.pages[at];
    if (view.state != PageState::kMapped) continue;
    const ViewRef ref{session.id, at};
    Victim victim{.content = view.content, .by = ref, .reason = reason, .score = page.score};
    if (choosing.demand.scope == Scope::kSession) victim.view = ref;
    take(choosing, std::move(victim));
  }
}

policy::Activity activity_of(const Session& session) {
  return is_running(session) ? policy::Activity::kActive : policy::Activity::kIdle;
}

bool may_leave(Choosing& choosing, const Session& session, PageIndex page) {
  if (choosing.contents.contains(session.pages.at(page).content)) return false;
  const auto reasons = spare_reasons(choosing.state, {session.id, page}, choosing.demand.scope);
  if (reasons.empty()) return true;
  count_skipped(choosing.state, reasons.front());
  const double score = session.policy->score(page);
  if (!choosing.guarded.score.has_value() || score < *choosing.guarded.score) {
    choosing.guarded = {
        absl::StrCat(page_text(session, page, score), ", ", as_absl(reason_name(reasons.front()))),
        score};
  }
  return false;
}

std::vector<policy::Victim> lowest(Choosing& choosing, const Session& session, size_t count) {
  return session.policy->lowest(count, activity_of(session),
                                [&](PageIndex page) { return may_leave(choosing, session, page); });
}

int state_rank(SessionState state) {
  switch (state) {
    case SessionState::kEnded:
      return 0;
    case SessionState::kOrphaned:
      return 1;
    case SessionState::kWaitingUser:
      return 2;
    case SessionState::kWaitingTool:
      return 3;
    case SessionState::kPreempted:
      return 4;
    case SessionState::kDecoding:
      return 5;
  }
  return 5;
}

enum class Computing : uint8_t { kNo, kYes };

std::vector<const Session*> in_order(const Choosing& choosing, Computing computing) {
  std::vector<const Session*> sessions;
  const bool running = computing == Computing::kYes;
  for (const auto& [id, session] : choosing.state.sessions) {
    if (!session->engine || session->sealed_pages == 0) continue;  // those are entries
    if (is_running(*session) != running) continue;
    if (running && session->mode == Mode::kExact) continue;
    if (id == choosing.demand.session && !running) continue;
    if (choosing.demand.op && session->wake && session->wake < choosing.demand.op) continue;
    sessions.push_back(session.get());
  }
  const auto key = [&choosing](const Session* session) {
    return std::make_tuple(choosing.state.tenants.at(session->tenant).options.priority,
                           session->priority, state_rank(session->state),
                           session->state_since.nanoseconds, session->id.value);
  };
  std::sort(sessions.begin(), sessions.end(),
            [&key](const Session* a, const Session* b) { return key(a) < key(b); });
  return sessions;
}

// An exact session whose pages nothing below can keep loses its end, never its beginning: without
// the beginning the rest is worth nothing. Otherwise its policy decides.
std::vector<policy::Victim> leaving_order(Choosing& choosing, const Session& session,
                                          size_t count) {
  if (host_tier_exists(choosing.state) || session.mode == Mode::kLossy) {
    return lowest(choosing, session, count);
  }
  std::vector<policy::Victim> pages = lowest(choosing, session, session.sealed_pages);
  std::sort(pages.begin(), pages.end(),
            [](const auto& a, const auto& b) { return a.page > b.page; });
  if (pages.size() > count) pages.resize(count);
  return pages;
}

void take_idle(Choosing& choosing, Pass pass) {
  for (const Session* session : in_order(choosing, Computing::kNo)) {
    if (choosing.done()) {
      choosing.next_is(absl::StrCat("session ", session->name, ": leaves after these"), {});
      return;
    }
    const size_t want = choosing.demand.need - choosing.taken;
    const auto pages = leaving_order(choosing, *session, want + 1);
    for (const policy::Victim& page : pages) {
      if (choosing.done()) {
        choosing.next_is(page_text(*session, page.page, page.score), page.score);
        break;
      }
      if (!tenant_gives(choosing, session->tenant, pass)) {
        count_skipped(choosing.state, Reason::kReservation);
        break;
      }
      take_page(choosing, *session, page, why(choosing, session->tenant));
    }
  }
}

std::pair<int32_t, int32_t> priorities(const Choosing& choosing, const Session& session) {
  return {choosing.state.tenants.at(session.tenant).options.priority, session.priority};
}

using Sessions = absl::Span<const Session* const>;

// The lowest pages of sessions of one priority. A tenant that has given all it must may stop the
// pages that were looked up for it, so the others are asked again.
void take_alike(Choosing& choosing, Pass pass, Sessions sessions) {
  for (bool more = true; more;) {
    std::vector<const Session*> giving;
    std::vector<policy::Policy::Source> sources;
    for (const Session* session : sessions) {
      if (!choosing.done() && !tenant_gives(choosing, session->tenant, pass)) continue;
      giving.push_back(session);
      sources.push_back({session->policy.get(), activity_of(*session)});
    }
    const size_t want = choosing.done() ? 1 : choosing.demand.need - choosing.taken + 1;
    const auto picks = policy::Policy::lowest_of(sources, want, [&](size_t source, PageIndex page) {
      return may_leave(choosing, *giving[source], page);
    });
    more = false;
    for (const policy::Policy::Pick& pick : picks) {
      const Session& session = *giving[pick.source];
      if (choosing.done()) {
        choosing.next_is(page_text(session, pick.victim.page, pick.victim.score),
                         pick.victim.score);
        return;
      }
      if (!tenant_gives(choosing, session.tenant, pass)) continue;
      take_page(choosing, session, pick.victim, why(choosing, session.tenant));
      more = picks.size() == want;
    }
  }
}

void take_running(Choosing& choosing, Pass pass, Sessions sessions) {
  while (!sessions.empty() && choosing.choice.spared.text.empty()) {
    const auto first = priorities(choosing, *sessions.front());
    size_t alike = 1;
    while (alike < sessions.size() && priorities(choosing, *sessions[alike]) == first) ++alike;
    take_alike(choosing, pass, sessions.first(alike));
    sessions.remove_prefix(alike);
  }
}

}  // namespace

namespace {

// Says who stayed, and for each victim how much more room would have kept it.
void conclude(Choosing& choosing) {
  Spared& next = choosing.choice.spared;
  const Spared& guarded = choosing.guarded;
  const bool lower =
      guarded.score.has_value() && (!next.score.has_value() || *guarded.score < *next.score);
  if (lower) next.text = absl::StrCat(guarded.text, next.text.empty() ? "" : "; then ", next.text);
  const auto count = static_cast<uint32_t>(choosing.choice.victims.size());
  for (uint32_t i = 0; i < count; ++i) choosing.choice.victims[i].room = count - i;
}

}  // namespace

Choice choose(State& state, const Demand& demand) {
  Choosing choosing{state, demand, {}, 0, {}, {}, {}};
  for (const auto& [id, tenant] : state.tenants) {
    choosing.by_tenant[id] = slots_leaving(state, id);
  }
  if (demand.scope == Scope::kSession) {
    const Session& session = *state.sessions.at(demand.session);
    take_running(choosing, Pass::kOwn, {&session});
  } else {
    for (const Pass pass : {Pass::kAboveReservation, Pass::kOwn}) {
      take_unreferenced(choosing, pass);
      take_idle(choosing, pass);
      if (choosing.done()) break;
      take_running(choosing, pass, in_order(choosing, Computing::kYes));
    }
  }
  choosing.choice.enough = choosing.done();
  conclude(choosing);
  return std::move(choosing.choice);
}

uint32_t slots_leaving(const State& state) {
  uint32_t slots = 0;
  for (const auto& [id, tenant] : state.tenants) slots += slots_leaving(state, id);
  return slots;
}

uint32_t slots_leaving(const State& state, TenantId tenant) {
  uint32_t slots = 0;
  for (const ContentId id : state.leaving) {
    const Content& content = *state.contents.at(id);
    if (content.tenant != tenant || !content.slot_valid) continue;
    if (state.slabs.at(content.slot->slab).life == Slab::Life::kRetiring) continue;
    const bool late =
        std::any_of(content.views.begin(), content.views.end(),
                    [&state](const ViewRef& ref) { return view_of(state, ref).late; });
    slots += !late;
  }
  return slots;
}

uint32_t views_leaving(const Session& session) {
  return static_cast<uint32_t>(
      std::count_if(session.pages.begin(), session.pages.end(), [](const View& view) {
        return !view.late && (view.state == PageState::kAsked || view.state == PageState::kGivenUp);
      }));
}

}  // namespace memdecay::ledger
