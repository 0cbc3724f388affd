// The orders in which contents leave the device (those nobody maps) and the host tier, and the room
// there (see contents.h). Least recently used inside a class; inside one touch the leaf before the
// root, so that a chain never loses its beginning first.
#include "absl/strings/str_cat.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/check.h"

namespace memdecay::ledger {
namespace {

// Classes of the host order, the first to go first.
constexpr uint8_t kRedundant = 0;  // the device has the bytes too, or an entry has a twin
constexpr uint8_t kUnreferenced = 1;
constexpr uint8_t kOfEnded = 2;  // closed or orphaned sessions only
constexpr uint8_t kOfWaiting = 3;
constexpr uint8_t kOfRunning = 4;
constexpr uint8_t kLeased = 5;  // never by room making

uint8_t session_class(const Session& session) {
  if (session.state == SessionState::kEnded || session.state == SessionState::kOrphaned) {
    return kOfEnded;
  }
  return is_running(session) ? kOfRunning : kOfWaiting;
}

uint8_t views_class(const State& state, const Content& content) {
  uint8_t klass = kUnreferenced;
  for (const ViewRef& ref : content.views) {
    klass = std::max(klass, session_class(*state.sessions.at(ref.session)));
  }
  return klass;
}

Rank rank(const State& state, const Content& content, uint8_t klass) {
  int32_t priority = state.tenants.at(content.tenant).options.priority;
  for (const ViewRef& ref : content.views) {
    const int32_t of_session = state.sessions.at(ref.session)->priority;
    priority = std::max(priority, state.tenants.at(content.tenant).options.priority + of_session);
  }
  return {klass, priority, content.touched.nanoseconds, ~content.page, content.id};
}

void place(absl::btree_set<Rank>& order, std::optional<Rank>& held, std::optional<Rank> wanted) {
  if (held == wanted) return;
  if (held.has_value()) order.erase(*held);
  held = wanted;
  if (held.has_value()) order.insert(*held);
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

bool fits(const State& state, const Content& content) {
  const Options& options = state.options;
  if (options.host_pages > 0) return state.host_used_pages + 1 <= options.host_pages;
  return state.host_used_bytes + host_page_bytes(content) <= options.host_bytes;
}

bool could_ever_fit(const State& state, const Content& content) {
  const Options& options = state.options;
  return options.host_pages > 0 || host_page_bytes(content) <= options.host_bytes;
}

}  // namespace

bool host_tier_exists(const State& state) {
  return state.options.host_pages > 0 || state.options.host_bytes > 0;
}

uint64_t host_page_bytes(const Content& content) { return content.layout.page_bytes; }

Rank host_rank(const State& state, const Content& content) {
  uint8_t klass = views_class(state, content);
  if (content.slot_valid || (content.views.empty() && !content.indexed)) klass = kRedundant;
  if (content.leases > 0) klass = kLeased;
  return rank(state, content, klass);
}

void refresh_ranks(State& state, Content& content) {
  const bool on_device =
      content.slot_valid && !content.leaving && engine_views(state, content) == 0;
  std::optional<Rank> device;
  if (on_device) {
    const bool twin = content.key.has_value() && !content.indexed;
    device = rank(state, content, twin ? kRedundant : views_class(state, content));
  }
  place(state.unreferenced, content.device_rank, device);
  std::optional<Rank> host;
  if (content.host == HostState::kValid) host = host_rank(state, content);
  place(state.host_order, content.host_rank, host);
}

void refresh_session(Context& context, Session& session, Touch touch) {
  for (const View& view : session.pages) {
    Content* content = find_content(context.state, view.content);
    if (content == nullptr) continue;
    if (touch == Touch::kYes) content->touched = context.now;
    refresh_ranks(context.state, *content);
  }
}

void drop_host_replica(Context& context, Content& content) {
  State& state = context.state;
  MEMDECAY_CHECK(content.host != HostState::kNone);
  content.host = HostState::kNone;
  --state.host_used_pages;
  state.host_used_bytes -= host_page_bytes(content);
  context.out.emplace_back(DropHost{content.id});
  refresh_ranks(state, content);
}

bool make_host_room(Context& context, const Content& content) {
  State& state = context.state;
  if (!host_tier_exists(state) || !could_ever_fit(state, content)) return false;
  const Rank incoming = host_rank(state, content);
  while (!fits(state, content)) {
    Content* victim = nullptr;
    for (const Rank& candidate : state.host_order) {
      if (!(candidate < incoming) || candidate.klass == kLeased) break;
      Content* held = state.contents.at(candidate.content).get();
      if (!held->copy) {  // a copy that reads it keeps it
        victim = held;
        break;
      }
    }
    if (victim == nullptr) return false;
    drop_host_replica(context, *victim);
    count(state, "host_dropped_total");
    if (!has_bytes(*victim)) lose(context, *victim);
  }
  return true;
}

void trim_host(Context& context) {
  State& state = context.state;
  const Options& options = state.options;
  const auto over = [&] {
    return options.host_pages > 0 ? state.host_used_pages > options.host_pages
                                  : state.host_used_bytes > options.host_bytes;
  };
  std::vector<ContentId> order;
  for (const Rank& rank : state.host_order) order.push_back(rank.content);
  for (const ContentId id : order) {
    if (!over()) return;
    Content* content = find_content(state, id);
    if (content == nullptr || content->host != HostState::kValid || content->copy) continue;
    drop_host_replica(context, *content);
    count(state, "host_dropped_total");
    if (!has_bytes(*content)) lose(context, *content);
  }
}

}  // namespace memdecay::ledger
