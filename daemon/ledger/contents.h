// Contents: sealed pages wherever their bytes are. Who refers to them, under which key they are
// found, in which order they would leave the device and the host tier, and when they are forgotten.
//
// Only exact contents have a key. Of two with one key the later is a twin: private, the first to
// go, and the heir when the entry's last replica goes.
// Thread: the ledger's. Not here: copies (leave.h, restore.h).
#pragma once

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "daemon/ledger/context.h"

namespace memdecay::ledger {

Content& add_content(Context& context, const Session& session, PageIndex page,
                     absl::Span<const TokenId> tokens);
void add_view(Context& context, Content& content, ViewRef view);
// The view no longer refers to it; a content that nobody could find any more is forgotten.
void remove_view(Context& context, Content& content, ViewRef view);

// Makes it findable under its key, or a twin of what is.
void index_content(Context& context, Content& content);
// Its bytes are there: a twin whose entry has none yet takes the entry's place.
void prefer_valid(Context& context, Content& content);
// The content that Lookup finds under the key, whose tokens and prefix are these.
Content* find_entry(State& state, TenantId tenant, const PageKey& key,
                    absl::Span<const TokenId> tokens, uint64_t prefix_print);
// Whether a content stands under the key of the session's page.
bool findable(const State& state, const Session& session, PageIndex page);
// A number for all tokens from position 0 on, to be compared on a hit beside the key.
uint64_t extend_print(uint64_t print, absl::Span<const TokenId> tokens);

bool has_bytes(const Content& content);
// Views that its engines read, or are about to.
uint32_t mapping_views(const State& state, const Content& content);

// Puts it where it belongs in the orders of leaving. Call after views, leases, sessions' states or
// replicas changed.
void refresh_ranks(State& state, Content& content);
// The same for all pages of a session, whose state changed; `touch` marks them used now.
enum class Touch : uint8_t { kNo, kYes };
void refresh_session(Context& context, Session& session, Touch touch);
Rank host_rank(const State& state, const Content& content);
// Its place in the host's order once it has left the device.
Rank rank_below(const State& state, const Content& content);

// Drops the host replica. The content may have no bytes afterwards: lose() it then.
void drop_host_replica(Context& context, Content& content);
// Makes room for one more page of the content in the host tier, dropping only what would leave
// before it and what no living session refers to.
enum class HostRoom : uint8_t { kMade, kFull, kNotWorthIt };
HostRoom make_host_room(Context& context, const Content& content);
// Drops replicas until the tier fits its limit, which was lowered.
void trim_host(Context& context);
// Drops replicas that no session needs until `enough()`.
void forget_cached(Context& context, absl::FunctionRef<bool()> enough);
// All of the host tier, the first to leave first.
std::vector<ContentId> host_leaving_order(const State& state);
bool host_tier_exists(const State& state);
// What one page counts in the tier; its header (page_header.h) comes on top.
uint64_t host_page_bytes(const Content& content);

// An engine that places blocks itself gets its block back whatever became of the page's session.
void return_block(Context& context, const Content& content, const SlotRef& slot);
// Its bytes are gone: pages that show it are dropped, engines are told once, the heir takes over.
void lose(Context& context, Content& content);
// Forgets it and its bytes (nobody refers to it).
void discard(Context& context, Content& content);

}  // namespace memdecay::ledger
