// What anybody may ask by hand: evict, restore, free slots, drop replicas, drain (see apply.h).
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/ledger/apply.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

absl::Status no_such_page(const Session& session, PageIndex page) {
  return make_error(ErrorCode::kUnknownPage, absl::StrCat("page ", page),
                    absl::StrCat("session ", session.name, " has ", session.pages.size(), " pages"),
                    "name pages that are there");
}

// What refuses an eviction by hand: protections, not preferences.
bool forbids(Reason reason) {
  return reason == Reason::kPinned || reason == Reason::kLeased || reason == Reason::kSink ||
         reason == Reason::kExactModeRunning;
}

absl::Status check_evict(const State& state, const Session& session, PageIndex page) {
  if (page >= session.pages.size()) return no_such_page(session, page);
  const PageState page_state = session.pages[page].state;
  const std::string asked = absl::StrCat("evict of page ", page, " of session ", session.name);
  if (is_unsealed(page_state) || page_state == PageState::kSealing) {
    return make_error(ErrorCode::kNotSealed, asked, std::string(page_state_name(page_state)),
                      "seal it first");
  }
  if (page_state != PageState::kMapped) return absl::OkStatus();
  for (const Reason reason : spare_reasons(state, {session.id, page}, Scope::kSession)) {
    if (!forbids(reason)) continue;
    return make_error(ErrorCode::kBusy, asked, std::string(reason_name(reason)),
                      reason == Reason::kExactModeRunning ? "park the session first"
                                                          : "unpin or release it first");
  }
  return absl::OkStatus();
}

// The session has given the page up, and its bytes are still in a slot that nobody maps.
bool kept_by_nobody(const State& state, const View& view) {
  const auto content = state.contents.find(view.content);
  return view.state == PageState::kHole && content != state.contents.end() &&
         content->second->device_rank.has_value() && content->second->leases == 0;
}

// The pages and the atomic spans that they are in.
std::set<PageIndex> whole_spans(const Session& session, const std::vector<PageIndex>& named) {
  std::set<PageIndex> pages(named.begin(), named.end());
  for (const PageIndex page : named) {
    if (page >= session.pages.size()) continue;
    const auto span = atomic_pages(session, page);
    if (!span.has_value()) continue;
    for (PageIndex at = span->first; at <= span->second && at < session.sealed_pages; ++at) {
      pages.insert(at);
    }
  }
  return pages;
}

absl::Status check_restore(const Session& session, const RestorePages& event) {
  bool any_there = event.pages.empty();
  for (const PageIndex page : event.pages) {
    if (page >= session.pages.size()) return no_such_page(session, page);
    const PageState page_state = session.pages[page].state;
    if (is_unsealed(page_state) || page_state == PageState::kSealing) {
      return make_error(ErrorCode::kNotSealed, absl::StrCat("restore of page ", page),
                        std::string(page_state_name(page_state)), "only what left comes back");
    }
    any_there |= page_state != PageState::kDropped;
  }
  if (any_there) return absl::OkStatus();
  return make_error(ErrorCode::kNotFound, absl::StrCat("restore of page ", event.pages.front()),
                    "its bytes are gone from every tier", "truncate to it and compute it again");
}

// Drops one tier's replica if nobody depends on it being there; true if something was dropped.
bool drop_replica(Context& context, Content& content, Tier tier) {
  State& state = context.state;
  if (content.leases > 0 || content.copy) return false;
  if (tier == Tier::kHost) {
    if (content.host != HostState::kValid) return false;
    drop_host_replica(context, content);
  } else {
    if (!content.slot_valid || content.open_fences > 0 || !content.device_rank.has_value()) {
      return false;
    }
    for (const ViewRef& ref : content.views) {  // of sessions that no engine holds
      if (!is_mapped(view_of(state, ref).state)) continue;
      set_page_state(state, ref, PageState::kGivenUp);
      set_page_state(state, ref, PageState::kHole);
    }
    const SlotRef slot = *content.slot;
    content.slot.reset();
    content.slot_valid = false;
    stay(context, content);
    free_slot(context, slot);
  }
  if (!has_bytes(content)) lose(context, content);
  return true;
}

std::vector<ContentId> droppable(const State& state, const Drop& event) {
  std::vector<ContentId> contents;
  if (event.session) {
    const Session& session = *state.sessions.at(event.session);
    for (const PageIndex page : event.pages) contents.push_back(session.pages.at(page).content);
    return contents;
  }
  for (const auto& [id, content] : state.contents) {
    const bool own = !event.origin.tenant || content->tenant == event.origin.tenant;
    const bool held =
        std::any_of(content->views.begin(), content->views.end(), [&state](const ViewRef& ref) {
          return static_cast<bool>(state.sessions.at(ref.session)->engine);
        });
    if (own && !held) contents.push_back(id);
  }
  return contents;
}

}  // namespace

void apply(Context& context, const EvictPages& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = session_for(state, event.origin, event.session);
  absl::Status status = found.status();
  std::set<PageIndex> pages;
  if (found.ok()) pages = whole_spans(**found, event.pages);
  for (const PageIndex page : pages) {
    if (status.ok()) status = check_evict(state, **found, page);
  }
  if (!status.ok()) return refuse(context, event.origin.request, status);
  Session& session = **found;
  std::vector<Victim> victims;
  for (const PageIndex page : pages) {
    const ViewRef ref{session.id, page};
    if (kept_by_nobody(state, session.pages[page])) {
      victims.push_back(
          {.content = session.pages[page].content, .by = ref, .reason = Reason::kAdmin});
    }
    if (session.pages[page].state != PageState::kMapped) continue;
    victims.push_back({.content = session.pages[page].content,
                       .view = ref,
                       .by = ref,
                       .reason = Reason::kAdmin,
                       .score = session.policy->score(page)});
  }
  begin_leaving(context, victims, "asked by hand", {});
  reply(context, event.origin.request);
}

void apply(Context& context, const RestorePages& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = session_for(state, event.origin, event.session);
  const absl::Status status = found.ok() ? check_restore(**found, event) : found.status();
  if (!status.ok()) return refuse(context, event.origin.request, status);
  begin_op(context, **found, RestoreOp::Purpose::kRestore, event.origin.request, event.pages,
           event.blocks);
}

void apply(Context& context, const CancelRestore& event) {
  State& state = context.state;
  for (const auto& [id, op] : state.ops) {
    if (op.request != event.restore) continue;
    abandon_op(context, id, ErrorCode::kOk);
    return reply(context, event.origin.request);
  }
  refuse(context, event.origin.request,
         make_error(ErrorCode::kNotFound, "cancel of a restore", "it has ended already",
                    "nothing to do"));
}

void apply(Context& context, const Pressure& event) {
  Waiter waiter{.kind = Waiter::Kind::kPressure,
                .request = event.origin.request,
                .tenant = event.origin.tenant,
                .need = event.pages};
  waiter.deadline = set_timer(context, Timer::Kind::kWaiter, context.state.options.request,
                              event.origin.request.value);
  context.state.waiters.push_back(std::move(waiter));
}

void apply(Context& context, const Drop& event) {
  State& state = context.state;
  if (event.session) {
    const absl::StatusOr<Session*> found = session_for(state, event.origin, event.session);
    if (!found.ok()) return refuse(context, event.origin.request, found.status());
    for (const PageIndex page : event.pages) {
      if (page >= (*found)->pages.size()) {
        return refuse(context, event.origin.request, no_such_page(**found, page));
      }
    }
  }
  DropReply answer;
  for (const Tier tier : {Tier::kDevice, Tier::kHost}) {
    if (event.reach == Drop::Reach::kOneTier && tier != event.tier) continue;
    uint32_t cleared = 0;
    for (const ContentId id : droppable(state, event)) {
      if (Content* content = find_content(state, id)) {
        cleared += drop_replica(context, *content, tier);
      }
    }
    answer.cleared.emplace_back(tier, cleared);
  }
  reply(context, event.origin.request, std::move(answer));
}

void apply(Context& context, const Drain& event) {
  State& state = context.state;
  state.draining = true;
  for (const auto& [id, engine] : state.engines) notify(context, id, {}, ShutdownNotice{});
  reply(context, event.origin.request);
}

}  // namespace memdecay::ledger
