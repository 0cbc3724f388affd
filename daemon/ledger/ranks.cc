// The orders in which contents leave the device (those nobody maps) and the host tier (see
// contents.h): which class a content is in, and where it stands in it. What living sessions refer
// to stands by its last use, least recently used first; what they do not, by its uses as well
// (keep.h). Inside one time the leaf leaves before the root, so that a chain never loses its
// beginning first. The room in the host tier is in host_room.cc.
#include "daemon/ledger/ranks.h"

#include "absl/strings/str_cat.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

RankClass session_class(const Session& session) {
  if (session.state == SessionState::kEnded || session.state == SessionState::kOrphaned) {
    return kOfEnded;
  }
  return is_running(session) ? kOfRunning : kOfWaiting;
}

RankClass views_class(const State& state, const Content& content) {
  RankClass klass = kUnreferenced;
  bool lossy = false;  // goes on with holes: what is behind a lost page still serves it
  for (const ViewRef& ref : content.views) {
    const Session& session = *state.sessions.at(ref.session);
    klass = std::max(klass, session_class(session));
    lossy |= session.mode == Mode::kLossy;
  }
  return content.worth.cut_off && !lossy && klass <= kOfEnded ? kWorthless : klass;
}

bool is_twin(const Content& content) { return content.key.has_value() && !content.indexed; }

Rank rank(const State& state, const Content& content, RankClass klass, Held tier) {
  int32_t priority = state.tenants.at(content.tenant).options.priority;
  for (const ViewRef& ref : content.views) {
    const int32_t of_session = state.sessions.at(ref.session)->priority;
    priority = std::max(priority, state.tenants.at(content.tenant).options.priority + of_session);
  }
  const bool kept = klass == kUnreferenced || klass == kOfEnded;
  return {.klass = klass,
          .priority = priority,
          .rung = kept ? level(state, content, tier) : int16_t{0},
          .at_ns = content.touched.nanoseconds,
          .depth_descending = ~content.page,
          .name = content.id.value};
}

void place(retention::Order& order, std::optional<Rank>& held, std::optional<Rank> wanted) {
  if (held == wanted) return;
  if (held.has_value()) order.erase(*held);
  held = wanted;
  if (held.has_value()) order.put(*held);
}

// Views that an engine reads or is about to.
uint32_t engine_views(const State& state, const Content& content) {
  uint32_t views = 0;
  for (const ViewRef& ref : content.views) {
    const Session& session = *state.sessions.at(ref.session);
    const PageState page = session.pages.at(ref.page).state;
    views += page == PageState::kSealing || page == PageState::kRestoring ||
             (is_mapped(page) && session.engine);
  }
  return views;
}

// The class by which it stands, or would stand, in the host's order without a device replica.
RankClass host_class(const State& state, const Content& content) {
  if (content.leases > 0) return kLeased;
  const RankClass klass = views_class(state, content);
  if (klass == kUnreferenced && !pays(state, content)) return kWorthless;
  if (content.views.empty() && !content.indexed) return std::min(klass, kRedundant);
  return klass;
}

}  // namespace

Rank rank_below(const State& state, const Content& content) {
  return rank(state, content, host_class(state, content), Held::kHost);
}

Rank host_rank(const State& state, const Content& content) {
  RankClass klass = host_class(state, content);
  if (content.slot_valid && klass != kLeased) klass = std::min(klass, kRedundant);
  return rank(state, content, klass, Held::kHost);
}

void refresh_ranks(State& state, Content& content) {
  const bool on_device =
      content.slot_valid && !content.leaving && engine_views(state, content) == 0;
  const bool on_host = content.host == HostState::kValid;
  if (on_device || on_host) {
    const RankClass klass = views_class(state, content);
    if (klass == kUnreferenced || klass == kOfEnded) first_stand(state, content);
  }
  std::optional<Rank> device;
  if (on_device) {
    RankClass klass = views_class(state, content);
    if (is_twin(content)) klass = std::min(klass, kRedundant);
    device = rank(state, content, klass, Held::kDevice);
  }
  place(state.unreferenced, content.device_rank, device);
  std::optional<Rank> host;
  if (on_host) host = host_rank(state, content);
  place(state.host_order, content.host_rank, host);
}

void refresh_session(Context& context, Session& session, Touch touch) {
  if (!session.engine) tell_worths(context.state, session);
  for (const View& view : session.pages) {
    Content* content = find_content(context.state, view.content);
    if (content == nullptr) continue;
    if (touch == Touch::kYes) content->touched = context.now;
    refresh_ranks(context.state, *content);
  }
}

}  // namespace memdecay::ledger
