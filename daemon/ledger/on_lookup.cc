// Lookup, Acquire, Release (see apply.h). Lookup changes and refreshes nothing. Acquire takes a
// lease, and with a session maps what it found into it from its end on; a page is compared with its
// seal checksum before somebody else first sees it.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/ledger/apply.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/copies.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/lives.h"
#include "daemon/ledger/lookups.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"

namespace memdecay::ledger {
namespace {

enum class Found : uint8_t { kUsable, kPending, kMissing };

// A page being written counts as coming only so long: then it is a miss.
Found usable(const Context& context, const Content& content) {
  const State& state = context.state;
  const bool leaving_now = has_copy(state, content, CopyKind::kEvict);
  if (content.host == HostState::kValid) return Found::kUsable;
  if (content.slot_valid && !leaving_now) return Found::kUsable;
  if (!content.slot_valid && content.touched + state.options.pending <= context.now) {
    return Found::kMissing;
  }
  return Found::kPending;
}

struct Prefix {
  std::vector<Content*> contents;
  bool pending = false;
};

Prefix find_prefix(const Context& context, TenantId tenant, const std::vector<PageKey>& keys,
                   const std::vector<TokenId>& tokens) {
  Prefix prefix;
  if (keys.empty()) return prefix;
  const size_t page_tokens = tokens.size() / keys.size();
  uint64_t print = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto page = absl::MakeConstSpan(tokens).subspan(i * page_tokens, page_tokens);
    print = extend_print(print, page);
    Content* content = find_entry(context.state, tenant, keys[i], page, print);
    if (content == nullptr) break;
    const Found found = usable(context, *content);
    prefix.pending = found == Found::kPending;
    if (found != Found::kUsable) break;
    prefix.contents.push_back(content);
  }
  return prefix;
}

absl::Status check_query(const State& state, const LayoutRef& layout,
                         const std::vector<PageKey>& keys, const std::vector<TokenId>& tokens) {
  if (layout.page_tokens != state.options.page_tokens) {
    return make_error(ErrorCode::kLayoutRejected, absl::StrCat("page_tokens ", layout.page_tokens),
                      absl::StrCat("this daemon has pages of ", state.options.page_tokens),
                      "use the daemon's page_tokens");
  }
  if (tokens.size() != keys.size() * layout.page_tokens) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat(tokens.size(), " tokens"),
                      absl::StrCat(keys.size(), " keys of ", layout.page_tokens, " tokens"),
                      "send whole pages");
  }
  return absl::OkStatus();
}

std::string_view result_name(const Prefix& prefix, size_t asked) {
  if (prefix.pending) return "pending";
  if (prefix.contents.size() == asked && asked > 0) return "hit";
  return prefix.contents.empty() ? "miss" : "partial";
}

// Starts the comparisons that the acquire needs; empty: none.
absl::btree_set<CopyId> start_verifying(Context& context, const Prefix& prefix) {
  absl::btree_set<CopyId> copies;
  for (Content* content : prefix.contents) {
    if (!content->slot_valid || content->verified || !content->checksum.has_value()) continue;
    if (content->copy) {
      if (has_copy(context.state, *content, CopyKind::kVerify)) copies.insert(content->copy);
      continue;
    }
    copies.insert(start_copy(context, *content, CopyKind::kVerify, {}));
  }
  return copies;
}

// What the session has already must be the beginning of what is asked.
absl::Status check_session(const Session& session, const Acquire& event) {
  const auto asked = absl::StrCat("acquire into session ", session.name);
  if (!session.ready) {
    return make_error(ErrorCode::kBusy, asked, "it is not ready", "wait for its ready event");
  }
  if (session.layout.name_space != event.layout.name_space) {
    return make_error(ErrorCode::kLayoutRejected, asked, "the session has another layout",
                      "look up with the session's layout");
  }
  if (session.pages.size() > session.sealed_pages) {
    return make_error(ErrorCode::kBusy, asked, "it has pages that are not sealed",
                      "acquire before extending, or truncate them");
  }
  if (session.keys.size() != session.sealed_pages) {
    return make_error(ErrorCode::kInvalidArgument, asked, "it has approximate pages",
                      "repair it first");
  }
  const size_t common = std::min(session.keys.size(), event.keys.size());
  if (!std::equal(session.keys.begin(), session.keys.begin() + static_cast<ptrdiff_t>(common),
                  event.keys.begin())) {
    return make_error(ErrorCode::kInvalidArgument, asked, "its own pages have other content",
                      "ask for a prefix that begins with the session's tokens");
  }
  return absl::OkStatus();
}

// Adds the content as the session's next page.
PageIndex append_page(Context& context, Session& session, Content& content) {
  const auto page = static_cast<PageIndex>(session.pages.size());
  const bool on_device = content.slot_valid;
  if (on_device) stay(context, content);
  session.pages.push_back(
      View{.state = on_device ? PageState::kMapped : PageState::kHole, .content = content.id});
  session.tokens.insert(session.tokens.end(), content.tokens.begin(), content.tokens.end());
  session.keys.push_back(*content.key);
  session.prints.push_back(content.prefix_print);
  session.sealed_pages = page + 1;
  session.position = (page + 1) * session.layout.page_tokens;
  add_view(context, content, {session.id, page});
  session.policy->on_seal(page, region_runs(session, page));
  if (on_device) {
    share_slot(context, session.engine, *content.slot, ShareSlab::Access::kReadOnly);
  } else {
    session.policy->on_evicted(page);
  }
  tell_regions(context, session, page);
  tape_seal(context.state, session, page);
  return page;
}

void map_prefix(Context& context, Session& session, const Prefix& prefix, AcquireReply& answer) {
  std::vector<PageIndex> missing;
  for (size_t i = session.sealed_pages; i < prefix.contents.size(); ++i) {
    Content& content = *prefix.contents[i];
    content.touched = context.now;
    if (content.slot_valid) {
      tell_use(context.state, content, context.now, session.id.value, UsedFrom::kDevice);
    }
    const PageIndex page = append_page(context, session, content);
    answer.views.push_back(page_view(context.state, session, page));
    if (session.pages[page].state == PageState::kHole) missing.push_back(page);
  }
  if (missing.empty()) return;
  session.ready = false;
  session.wake = begin_op(context, session, RestoreOp::Purpose::kAcquire, {}, missing, {});
}

// A lease protects; only a session that maps the pages uses them (map_prefix).
LeaseId take_lease(Context& context, const Origin& origin, const Prefix& prefix) {
  State& state = context.state;
  const LeaseId id = new_id<LeaseId>(state);
  Lease lease{.id = id, .tenant = origin.tenant, .engine = origin.engine};
  lease.expires = set_timer(context, Timer::Kind::kLease, state.options.lease, id.value);
  for (Content* content : prefix.contents) {
    ++content->leases;
    lease.contents.push_back(content->id);
    refresh_ranks(state, *content);
  }
  state.leases.emplace(id, std::move(lease));
  return id;
}

absl::Status budget_allows(const Session& session, size_t pages) {
  if (session.budget_pages == 0 || session.mode == Mode::kLossy) return absl::OkStatus();
  if (pages <= session.budget_pages) return absl::OkStatus();
  return make_error(ErrorCode::kBudgetTooSmall, absl::StrCat(pages, " pages"),
                    absl::StrCat("the session's budget is ", session.budget_pages, " pages"),
                    "raise the budget");
}

// A lossy session takes as much of the prefix as its budget has room for.
void fit_budget(const Session& session, Prefix& prefix) {
  if (session.budget_pages == 0 || session.mode == Mode::kExact) return;
  const uint32_t held = occupancy(session);
  const size_t room = session.budget_pages > held ? session.budget_pages - held : 0;
  prefix.contents.resize(std::min(prefix.contents.size(), session.sealed_pages + room));
}

trace::Looked::Tail taped(Tail tail) {
  return tail == Tail::kPartial ? trace::Looked::Tail::kPartial : trace::Looked::Tail::kNone;
}

// The whole acquire, or its wait for comparisons. `failed`: one of them found other bytes.
constexpr int kVerifyRounds = 2;  // then the acquire is refused: a mover is stuck
enum class Compared : uint8_t { kNotYet, kSame, kDiffers };
void acquire(Context& context, const Acquire& event, Compared compared, int rounds) {
  State& state = context.state;
  const RequestId request = event.origin.request;
  absl::Status status = check_query(state, event.layout, event.keys, event.tokens);
  Session* session = nullptr;
  if (status.ok() && event.session) {
    const absl::StatusOr<Session*> own = own_session(state, event.origin, event.session);
    status = own.ok() ? check_session(**own, event) : own.status();
    if (status.ok()) session = *own;
  }
  if (!status.ok()) return refuse(context, request, status);
  Prefix prefix = find_prefix(context, event.origin.tenant, event.keys, event.tokens);
  if (session != nullptr) {
    absl::btree_set<CopyId> verifying = start_verifying(context, prefix);
    if (!verifying.empty() && rounds >= kVerifyRounds) {
      return refuse(context, request,
                    make_error(ErrorCode::kDeadline, "acquire",
                               "comparing the pages with their checksums does not end",
                               "try again later, or compute the tokens"));
    }
    if (!verifying.empty()) {
      state.acquires.push_back(
          {event, std::move(verifying), compared == Compared::kDiffers, rounds + 1});
      return;
    }
    fit_budget(*session, prefix);
    status = budget_allows(*session, prefix.contents.size());
    if (!status.ok()) return refuse(context, request, status);
  }
  tape_look(state, session,
            {.keys = event.keys, .found = prefix.contents.size(), .tail = taped(event.tail)});
  if (prefix.contents.empty()) {
    if (compared != Compared::kDiffers) return reply(context, request, AcquireReply{});
    return refuse(
        context, request,
        make_error(ErrorCode::kDataLoss, "acquire", "the page on the device is not what was sealed",
                   "compute these tokens again"));
  }
  AcquireReply answer{.pages = static_cast<uint32_t>(prefix.contents.size())};
  answer.lease = take_lease(context, event.origin, prefix);
  answer.expires = state.leases.at(answer.lease).expires;
  if (session != nullptr) map_prefix(context, *session, prefix, answer);
  count(state, "hit_tokens_total", "tier=device",
        static_cast<double>(prefix.contents.size() * event.layout.page_tokens));
  reply(context, request, std::move(answer));
}

}  // namespace

void apply(Context& context, const Lookup& event) {
  State& state = context.state;
  const absl::Status status = check_query(state, event.layout, event.keys, event.tokens);
  if (!status.ok()) return refuse(context, event.origin.request, status);
  const Prefix prefix = find_prefix(context, event.origin.tenant, event.keys, event.tokens);
  LookupReply answer{.pages = static_cast<uint32_t>(prefix.contents.size())};
  for (const Content* content : prefix.contents) {
    (content->slot_valid ? answer.device_pages : answer.host_pages) += 1;
  }
  answer.first_missing = answer.pages;
  if (prefix.pending) answer.pending = LookupReply::Pending::kYes;
  std::string labels("result=");
  count(state, "lookups_total", labels.append(result_name(prefix, event.keys.size())));
  tape_look(state, nullptr,
            {.keys = event.keys,
             .found = prefix.contents.size(),
             .tail = taped(event.tail),
             .taken = trace::Looked::Taken::kPeek});
  reply(context, event.origin.request, answer);
}

void apply(Context& context, const Acquire& event) {
  acquire(context, event, Compared::kNotYet, 0);
}

namespace {

// Those that wait for nothing any more are looked at again.
void acquire_again(Context& context) {
  std::vector<PendingAcquire> again;
  auto& acquires = context.state.acquires;
  for (PendingAcquire& pending : acquires) {
    if (pending.verifying.empty()) again.push_back(pending);
  }
  std::erase_if(acquires, [](const PendingAcquire& pending) { return pending.verifying.empty(); });
  for (const PendingAcquire& pending : again) {
    acquire(context, pending.what, pending.failed ? Compared::kDiffers : Compared::kSame,
            pending.rounds);
  }
}

}  // namespace

void verified(Context& context, CopyId copy, const absl::Status& status) {
  for (PendingAcquire& pending : context.state.acquires) {
    if (pending.verifying.erase(copy) != 0) pending.failed |= !status.ok();
  }
  acquire_again(context);
}

void recheck_acquires(Context& context) {
  const State& state = context.state;
  for (PendingAcquire& pending : context.state.acquires) {
    absl::btree_set<CopyId> still;
    for (const CopyId copy : pending.verifying) {
      const auto found = state.copies.find(copy);
      if (found != state.copies.end() && !found->second.abandoned) still.insert(copy);
    }
    pending.verifying = std::move(still);
  }
  acquire_again(context);
}

void apply(Context& context, const Release& event) {
  State& state = context.state;
  const auto found = state.leases.find(event.lease);
  if (found == state.leases.end() || found->second.tenant != event.origin.tenant) {
    refuse(context, event.origin.request,
           make_error(ErrorCode::kLeaseExpired, absl::StrCat("lease ", event.lease.value),
                      "it has expired, was released, or is another tenant's", "acquire again"));
    return;
  }
  end_lease(context, event.lease);
  reply(context, event.origin.request);
}

}  // namespace memdecay::ledger
