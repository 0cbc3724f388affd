// Contents: references, keys, twins and forgetting (see contents.h). The orders of leaving and the
// host tier's room are in ranks.cc.
#include "daemon/ledger/contents.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/ledger/copies.h"
#include "daemon/ledger/keep.h"
#include "daemon/ledger/lives.h"
#include "daemon/ledger/pages.h"
#include "daemon/ledger/slots.h"
#include "daemon/ledger/transitions.h"
#include "proto/contract/check.h"

namespace memdecay::ledger {
namespace {

IndexKey index_key(const State& state, TenantId tenant, PageKey key) {
  // Only tests shorten keys: whole bytes beyond the bits are zeroed, then the rest of one byte.
  for (int bit = state.key_bits; bit < 256; ++bit) {
    key.bytes[static_cast<size_t>(bit / 8)] &= static_cast<uint8_t>(~(0x80u >> (bit % 8)));
  }
  return {tenant, key};
}

// Takes the content out of the index; the first twin with bytes takes its place.
void unindex(Context& context, Content& content) {
  State& state = context.state;
  if (!content.key.has_value()) return;
  const auto found = state.index.find(index_key(state, content.tenant, *content.key));
  if (found == state.index.end()) return;
  Entry& entry = found->second;
  const auto twin = std::find(entry.twins.begin(), entry.twins.end(), content.id);
  if (twin != entry.twins.end()) entry.twins.erase(twin);
  if (!content.indexed) return;
  content.indexed = false;
  if (entry.twins.empty()) {
    state.index.erase(found);
    parent_gone(state, content.tenant, *content.key);
    return;
  }
  entry.first = entry.twins.front();
  entry.twins.erase(entry.twins.begin());
  Content& heir = *state.contents.at(entry.first);
  heir.indexed = true;
  refresh_ranks(state, heir);
}

bool same_content(const Content& a, absl::Span<const TokenId> tokens, uint64_t print) {
  return a.prefix_print == print && absl::MakeConstSpan(a.tokens) == tokens;
}

}  // namespace

Content& add_content(Context& context, const Session& session, PageIndex page,
                     absl::Span<const TokenId> tokens) {
  State& state = context.state;
  auto content = std::make_unique<Content>();
  content->id = new_id<ContentId>(state);
  content->tenant = session.tenant;
  content->layout = session.layout;
  content->page = page;
  content->sealed_by = session.id;
  content->tokens.assign(tokens.begin(), tokens.end());
  content->touched = context.now;
  Content& made = *content;
  state.contents.emplace(made.id, std::move(content));
  return made;
}

void add_view(Context& context, Content& content, ViewRef view) {
  content.views.push_back(view);
  refresh_ranks(context.state, content);
}

void remove_view(Context& context, Content& content, ViewRef view) {
  const auto found = std::find(content.views.begin(), content.views.end(), view);
  MEMDECAY_CHECK(found != content.views.end());
  content.views.erase(found);
  const bool findable = content.indexed && has_bytes(content);
  if (!content.views.empty() || findable) {
    refresh_ranks(context.state, content);
    return;
  }
  discard(context, content);
}

void index_content(Context& context, Content& content) {
  State& state = context.state;
  if (!content.key.has_value()) return;
  const IndexKey key = index_key(state, content.tenant, *content.key);
  const auto [found, fresh] = state.index.try_emplace(key, Entry{content.id, {}});
  if (fresh) {
    content.indexed = true;
    parent_back(state, content.tenant, *content.key);
    return;
  }
  const Content& first = *state.contents.at(found->second.first);
  if (same_content(first, content.tokens, content.prefix_print)) {
    found->second.twins.push_back(content.id);
    return;
  }
  count(state, "key_collisions_total");
  content.key.reset();  // another content holds the name: this page stays private
}

void prefer_valid(Context& context, Content& content) {
  State& state = context.state;
  if (!content.key.has_value() || content.indexed) return;
  const auto found = state.index.find(index_key(state, content.tenant, *content.key));
  if (found == state.index.end()) return;
  Content& first = *state.contents.at(found->second.first);
  if (has_bytes(first)) return;
  std::replace(found->second.twins.begin(), found->second.twins.end(), content.id, first.id);
  found->second.first = content.id;
  first.indexed = false;
  content.indexed = true;
  refresh_ranks(state, first);
}

Content* find_entry(State& state, TenantId tenant, const PageKey& key,
                    absl::Span<const TokenId> tokens, uint64_t prefix_print) {
  const auto found = state.index.find(index_key(state, tenant, key));
  if (found == state.index.end()) return nullptr;
  Content& content = *state.contents.at(found->second.first);
  if (!same_content(content, tokens, prefix_print)) {
    count(state, "key_collisions_total");
    return nullptr;
  }
  return &content;
}

bool findable(const State& state, const Session& session, PageIndex page) {
  return state.index.contains(index_key(state, session.tenant, session.keys.at(page)));
}

uint64_t extend_print(uint64_t print, absl::Span<const TokenId> tokens) {
  // The finaliser of SplitMix64 (Steele, Lea, Flood 2014) over position-dependent sums.
  for (const TokenId token : tokens) {
    print += 0x9e3779b97f4a7c15u + token;
    print = (print ^ (print >> 30)) * 0xbf58476d1ce4e5b9u;
    print = (print ^ (print >> 27)) * 0x94d049bb133111ebu;
    print ^= print >> 31;
  }
  return print;
}

bool has_bytes(const Content& content) {
  return content.slot_valid || content.host == HostState::kValid;
}

uint32_t mapping_views(const State& state, const Content& content) {
  uint32_t mapping = 0;
  for (const ViewRef& ref : content.views) {
    const PageState page = view_of(state, ref).state;
    mapping += is_mapped(page) || page == PageState::kRestoring || page == PageState::kSealing;
  }
  return mapping;
}

void return_block(Context& context, const Content& content, const SlotRef& slot) {
  const Slab* slab = find_slab(context.state, slot.slab);
  if (slab == nullptr || !slab->buffer_of) return;
  for (const ViewRef& ref : content.views) {
    if (context.state.sessions.at(ref.session)->engine == slab->buffer_of) return;  // was told
  }
  notify(context, slab->buffer_of, content.sealed_by, ReleasedNotice{{{content.page, slot}}});
}

void lose(Context& context, Content& content) {
  State& state = context.state;
  MEMDECAY_CHECK(!has_bytes(content));
  content.leaving = false;
  state.leaving.erase(content.id);
  unindex(context, content);
  content.key.reset();
  const auto views = content.views;
  for (const ViewRef& ref : views) drop_page(context, ref);
  if (content.views.empty()) {
    discard(context, content);
    return;
  }
  refresh_ranks(state, content);
}

void discard(Context& context, Content& content) {
  State& state = context.state;
  MEMDECAY_CHECK(content.views.empty());
  unindex(context, content);
  content.key.reset();
  const CopyId copy = content.copy;
  abandon_copy(context, content);
  if (content.slot.has_value()) {
    const SlotRef slot = *content.slot;
    content.slot.reset();
    content.slot_valid = false;
    if (copy || content.open_fences > 0) {  // still read
      watches_to_slot(state, content.id, slot);
      quarantine_slot(context, slot, {}, copy, content.open_fences,
                      {content.sealed_by, content.page});
    } else {
      free_slot(context, slot);
      return_block(context, content, slot);
    }
  }
  if (content.host == HostState::kValid) drop_host_replica(context, content);
  state.leaving.erase(content.id);
  leave_family(state, content);
  content.leases = 0;
  refresh_ranks(state, content);
  for (auto& [id, lease] : state.leases) std::erase(lease.contents, content.id);
  state.contents.erase(content.id);
}

}  // namespace memdecay::ledger
