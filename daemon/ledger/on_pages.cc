// Pages come into being: granted, written, sealed; and are cut off (see apply.h).
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/ledger/apply.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/grant.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/leave.h"
#include "daemon/ledger/on_fence.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/restore.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/check.h"
#include "proto/contract/page_key.h"

namespace memdecay::ledger {
namespace {

absl::Status may_compute(const Session& session) {
  if (is_running(session) && (session.ready || session.mode == Mode::kLossy)) {
    return absl::OkStatus();
  }
  return make_error(ErrorCode::kBusy, absl::StrCat("session ", session.name),
                    is_running(session) ? "its pages are on their way back" : "it is parked",
                    "unpark it and wait for its ready event");
}

absl::Status check_blocks(const State& state, const Engine& engine,
                          const std::vector<uint32_t>& blocks) {
  const auto buffer = state.slabs.find(engine.buffer);
  if (buffer == state.slabs.end() || buffer->second.life == Slab::Life::kRetiring) {
    return make_error(ErrorCode::kResourceExhausted, "blocks", "the engine's buffer is gone",
                      "attach again with fewer blocks");
  }
  absl::btree_set<uint32_t> seen;
  for (const uint32_t block : blocks) {
    if (block >= buffer->second.slots.size()) {
      return make_error(ErrorCode::kOutOfRange, absl::StrCat("block ", block),
                        absl::StrCat("the buffer has ", buffer->second.slots.size()),
                        "use another block");
    }
    if (buffer->second.slots[block].state != SlotState::kFree || !seen.insert(block).second) {
      return make_error(ErrorCode::kBusy, absl::StrCat("block ", block),
                        "it is in use or lent until Released", "use another block");
    }
  }
  return absl::OkStatus();
}

absl::Status check_extend(const State& state, const Session& session, const Extend& event) {
  absl::Status status = may_compute(session);
  if (!status.ok()) return status;
  if (event.pages == 0) {
    return make_error(ErrorCode::kInvalidArgument, "0 pages", {}, "ask for at least one page");
  }
  const Engine& engine = state.engines.at(session.engine);
  if (engine.placement == Placement::kDaemon) return status;
  if (event.blocks.size() != event.pages) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat(event.blocks.size(), " blocks for ", event.pages, " pages"),
                      "this engine places blocks itself", "name a free block for every page");
  }
  return check_blocks(state, engine, event.blocks);
}

absl::Status check_seal(const Session& session, const Seal& event) {
  const uint32_t tokens = session.layout.page_tokens;
  const uint64_t end = uint64_t{event.first_page} + event.pages;
  if (event.pages == 0 || end > session.pages.size()) {
    return make_error(
        ErrorCode::kOutOfRange, absl::StrCat("seal of pages ", event.first_page, " to ", end),
        absl::StrCat("the session was granted ", session.pages.size(), " pages"), "extend first");
  }
  if (event.first_page != session.sealed_pages) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat("seal of page ", event.first_page),
                      absl::StrCat("the next page to seal is ", session.sealed_pages),
                      "seal pages in order, each once");
  }
  if (event.tokens.size() != uint64_t{event.pages} * tokens) {
    return make_error(ErrorCode::kInvalidArgument, absl::StrCat(event.tokens.size(), " tokens"),
                      absl::StrCat(event.pages, " pages of ", tokens, " tokens"),
                      "send the token ids of whole pages");
  }
  if (!event.checksums.empty() && event.checksums.size() != event.pages) {
    return make_error(
        ErrorCode::kInvalidArgument,
        absl::StrCat(event.checksums.size(), " checksums for ", event.pages, " pages"), {},
        "send one a page or none");
  }
  return absl::OkStatus();
}

// Whether the pages about to be sealed, up to `end`, were computed with something missing. Tokens
// that were written while everything was there are exact, whatever has left since.
bool computed_with_holes(const Session& session, PageIndex end) {
  const bool written_since = end * session.layout.page_tokens > session.position;
  return session.tail_tainted || session.first_approximate.has_value() ||
         (written_since && missing_pages(session) > 0);
}

void name_page(Session& session, Content& content, const Seal& event,
               absl::Span<const TokenId> tokens) {
  std::vector<ExtraKey> extras;
  for (const std::string& extra : event.extras) extras.push_back({"extra", extra});
  std::optional<PageKey> parent;
  if (!session.keys.empty()) parent = session.keys.back();
  content.key = page_key(session.layout.name_space, parent,
                         std::span<const TokenId>(tokens.data(), tokens.size()), extras);
  name_parent(content, parent);
  session.keys.push_back(*content.key);
}

void seal_page(Context& context, Session& session, const Seal& event, PageIndex page,
               PageView::Exactness exactness) {
  State& state = context.state;
  View& view = session.pages[page];
  const uint32_t count = session.layout.page_tokens;
  const auto tokens =
      absl::MakeConstSpan(event.tokens).subspan((page - event.first_page) * count, count);
  Content& content = add_content(context, session, page, tokens);
  content.slot = view.slot;
  content.exactness = view.exactness = exactness;
  content.region = main_region(session, page);
  content.prefix_print = extend_print(session.prints.empty() ? 0 : session.prints.back(), tokens);
  if (!event.checksums.empty()) content.checksum = event.checksums[page - event.first_page];
  Slot& slot = *find_slot(state, view.slot);
  slot.content = content.id;
  slot.holder = {};
  view.content = content.id;
  view.slot = {};
  session.tokens.insert(session.tokens.end(), tokens.begin(), tokens.end());
  session.prints.push_back(content.prefix_print);
  if (exactness == PageView::Exactness::kExact) {
    name_page(session, content, event, tokens);
    index_content(context, content);
  } else if (!session.first_approximate.has_value()) {
    session.first_approximate = page;
  }
  add_view(context, content, {session.id, page});
  session.policy->on_seal(page, region_runs(session, page));
  session.sealed_pages = page + 1;
  tell_regions(context, session, page);
  if (view.pinned) session.policy->on_pin(page);
  tape_seal(state, session, page);
  const ViewRef ref{session.id, page};
  if (watch(context, session.engine, event.fence, {FenceWatch::Why::kSeal, ref, content.id, {}})) {
    set_page_state(state, ref, PageState::kSealing);
    ++view.fences;
    return;
  }
  complete_seal(context, ref);
}

}  // namespace

void complete_seal(Context& context, ViewRef ref) {
  State& state = context.state;
  View& view = view_of(state, ref);
  view.fences = 0;
  set_page_state(state, ref, PageState::kMapped);
  Content& content = *state.contents.at(view.content);
  content.slot_valid = true;
  set_slot_state(context, *content.slot, SlotState::kValid);
  prefer_valid(context, content);
  refresh_ranks(state, content);
}

bool blocks_free(const State& state, const Session& session, const Waiter& waiter) {
  const Engine& engine = state.engines.at(session.engine);
  return engine.placement == Placement::kDaemon || check_blocks(state, engine, waiter.blocks).ok();
}

void grant(Context& context, Session& session, const Waiter& waiter) {
  State& state = context.state;
  const Engine& engine = state.engines.at(session.engine);
  GrantReply granted;
  for (uint32_t i = 0; i < waiter.need; ++i) {
    const auto page = static_cast<PageIndex>(session.pages.size());
    const std::optional<SlotRef> slot =
        engine.placement == Placement::kEngine
            ? take_block(context, engine, waiter.blocks.at(i))
            : take_slot(context, {session.tenant, session.layout.name_space},
                        session.layout.page_bytes, engine.id);
    MEMDECAY_CHECK(slot.has_value());
    find_slot(state, *slot)->holder = {session.id, page};
    session.pages.push_back(View{.state = PageState::kGranted, .slot = *slot});
    share_slot(context, engine.id, *slot, ShareSlab::Access::kReadWrite);
    granted.pages.push_back(page_view(state, session, page));
  }
  reply(context, waiter.request, std::move(granted));
}

void apply(Context& context, const Extend& event) {
  State& state = context.state;
  const absl::StatusOr<Session*> found = own_session(state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  const Session& session = **found;
  const absl::Status status = check_extend(state, session, event);
  if (!status.ok()) return refuse(context, event.origin.request, status);
  Waiter waiter{.kind = Waiter::Kind::kExtend,
                .request = event.origin.request,
                .tenant = session.tenant,
                .session = session.id,
                .need = event.pages,
                .blocks = event.blocks};
  waiter.deadline =
      set_timer(context, Timer::Kind::kWaiter, state.options.request, event.origin.request.value);
  state.waiters.push_back(std::move(waiter));
}

void apply(Context& context, const Written& event) {
  const absl::StatusOr<Session*> found = own_session(context.state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  const uint32_t tokens = session.layout.page_tokens;
  if (event.position > session.pages.size() * tokens) {
    refuse(context, event.origin.request,
           make_error(ErrorCode::kOutOfRange, absl::StrCat("position ", event.position),
                      absl::StrCat("the session was granted ", session.pages.size(), " pages"),
                      "extend first"));
    return;
  }
  note_written(session, event.position);
  for (PageIndex page = session.sealed_pages;
       page < session.pages.size() && page * tokens < event.position; ++page) {
    if (session.pages[page].state == PageState::kGranted) {
      set_page_state(context.state, {session.id, page}, PageState::kFilling);
    }
  }
  reply(context, event.origin.request);
}

void apply(Context& context, const Seal& event) {
  const absl::StatusOr<Session*> found = own_session(context.state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  const absl::Status status = check_seal(session, event);
  if (!status.ok()) return refuse(context, event.origin.request, status);
  const bool approximate = computed_with_holes(session, event.first_page + event.pages);
  if (approximate && event.claim == Seal::Claim::kExact) {
    refuse(context, event.origin.request,
           make_error(ErrorCode::kInvalidArgument, "a claim that the pages are exact",
                      "the session computed them with pages missing or after approximate ones",
                      "say had_holes, or repair the session first"));
    return;
  }
  const bool holes = approximate || event.claim == Seal::Claim::kHoles;
  for (uint32_t i = 0; i < event.pages; ++i) {
    seal_page(context, session, event, event.first_page + i,
              holes ? PageView::Exactness::kApproximate : PageView::Exactness::kExact);
  }
  session.position = std::max(session.position, session.sealed_pages * session.layout.page_tokens);
  if (missing_pages(session) == 0) session.tail_tainted = false;
  reply(context, event.origin.request);
}

void apply(Context& context, const Truncate& event) {
  const absl::StatusOr<Session*> found = own_session(context.state, event.origin, event.session);
  if (!found.ok()) return refuse(context, event.origin.request, found.status());
  Session& session = **found;
  const uint32_t tokens = session.layout.page_tokens;
  if (event.tokens > session.pages.size() * tokens) {
    refuse(context, event.origin.request,
           make_error(ErrorCode::kOutOfRange, absl::StrCat("truncate to ", event.tokens, " tokens"),
                      absl::StrCat("the session has ", session.pages.size(), " pages"),
                      "keep at most what is there"));
    return;
  }
  remove_pages(context, session, event.tokens / tokens, {}, {}, Entries::kDropOwn);
  settle_ready(context, session);
  reply(context, event.origin.request);
}

}  // namespace memdecay::ledger
