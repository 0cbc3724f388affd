// Everything that can happen to the ledger, as plain values: what engines, orchestrators and
// operators ask, what movers and fences report, and the passing of time. A step of the ledger takes
// one of these and the time; nothing else ever changes it.
//
// Conventions: `request` names a caller that waits for a Reply effect (0: nobody waits). Every
// event with a request gets exactly one Reply, at once or later. Engines' events carry their epoch;
// an older one is answered `stale_epoch`. Spans are token positions, half open [begin, end).
// Thread: values; built on any thread, consumed by the ledger's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "proto/contract/clock.h"
#include "proto/contract/ids.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::ledger {

// Who speaks. `engine` is 0 for orchestrators and operators; `tenant` comes from the credential.
struct Origin {
  RequestId request;
  TenantId tenant;
  EngineId engine;
  Epoch epoch;
};

struct Span {
  uint32_t begin = 0;  // token position
  uint32_t end = 0;    // one past the last
};

struct TaggedSpan {
  Span span;
  RegionId region = 0;
  enum class Atomic : uint8_t { kNo, kYes } atomic = Atomic::kNo;
};

// ---- engines -----------------------------------------------------------------------------------
// kOperate: it only asks and steers, and is no engine in any count.
enum class Purpose : uint8_t { kDecode, kOperate };
// A new engine process. Replies AttachReply.
struct Attach {
  Origin origin;
  std::string name;
  Placement placement = Placement::kDaemon;
  uint32_t blocks = 0;  // engine placement: blocks of its buffer
  Purpose purpose = Purpose::kDecode;
};
// The same process comes back with its secret: sessions and mappings go on. Replies AttachReply.
struct Reattach {
  Origin origin;
};
// Its sockets closed; the process may live: nothing of it is re-used.
struct Disconnected {
  EngineId engine;
};
// It spoke again, or has not for `limits.silent_ms`.
struct Silence {
  EngineId engine;
  enum class Now : uint8_t { kSilent, kSpeaking } now = Now::kSilent;
};
// The process is certainly gone. Fences that passed were reported before this.
struct EngineGone {
  EngineId engine;
};
// An orderly goodbye: sessions are orphaned or closed, nothing is quarantined.
struct Leave {
  Origin origin;
};
// The engine has unmapped a slab that UnmapSlab asked for.
struct SlabUnmapped {
  Origin origin;
  SlabId slab;
};

// ---- sessions ----------------------------------------------------------------------------------
struct LayoutRef {
  NamespaceId name_space;
  uint32_t page_tokens = 16;
  uint64_t page_bytes = 0;
};

// Replies SessionReply.
struct OpenSession {
  Origin origin;
  std::string name;  // unique in the tenant; empty: the daemon makes one
  LayoutRef layout;
  Mode mode = Mode::kExact;
  uint32_t budget_pages = 0;                                        // 0: no budget of its own
  int32_t priority = 0;                                             // a higher one leaves later
  std::string policy;                                               // empty: the configured one
  std::vector<std::pair<std::string, std::string>> policy_options;  // above the configured ones
  RegionId default_region = region_id(Region::kUser);
};
// Replies SessionReply with the tokens, regions and pages of what is resumed or forked.
struct ResumeSession {
  Origin origin;
  SessionId session;
  LayoutRef layout;
  enum class Steal : uint8_t { kNo, kYes } steal = Steal::kNo;
};
struct ForkSession {
  Origin origin;
  SessionId from;
  std::string name;
};
struct CloseSession {
  Origin origin;
  SessionId session;
  enum class What : uint8_t { kKeep, kForget } what = What::kKeep;
  Fence fence;  // the last step that read its pages
};
// Replies GrantReply: `pages` more slots, contiguous page indices at the session's end.
struct Extend {
  Origin origin;
  SessionId session;
  uint32_t pages = 0;
  std::vector<uint32_t> blocks;  // engine placement: the block of each page
};
// The engine has written tokens up to `position` (not a whole page yet). No reply is owed.
struct Written {
  Origin origin;
  SessionId session;
  uint32_t position = 0;
};
// Whole pages are written; their bytes never change again. Replies Done.
struct Seal {
  Origin origin;
  SessionId session;
  PageIndex first_page = 0;
  uint32_t pages = 0;
  std::vector<TokenId> tokens;      // pages * page_tokens
  std::vector<Checksum> checksums;  // one a page, or none: taken when the page leaves the device
  std::vector<std::string> extras;  // extra keys that hold for these pages (media ids, salts)
  Fence fence;                      // bytes are there once it has passed
  enum class Claim : uint8_t { kNone, kExact, kHoles } claim = Claim::kNone;
};
struct Tag {
  Origin origin;
  SessionId session;
  std::vector<TaggedSpan> spans;  // the later wins, per token; may reach beyond the end
};
struct Untag {
  Origin origin;
  SessionId session;
  Span span;
};
struct EndGroup {
  Origin origin;
  SessionId session;
  Span span;  // empty: all scratchpad tokens so far
  enum class Cut : uint8_t { kNo, kYes } cut = Cut::kNo;
};
struct Hint {
  Origin origin;
  SessionId session;
  Span span;
  double relevance = 0.5;  // [0, 1]
};
struct Supersede {
  Origin origin;
  SessionId session;
  Span span;
};
// Explicit pins of pages [first, first + pages): all or nothing.
struct Pin {
  Origin origin;
  SessionId session;
  PageIndex first_page = 0;
  uint32_t pages = 0;
  std::optional<Duration> ttl;
};
struct Unpin {
  Origin origin;
  SessionId session;
  PageIndex first_page = 0;
  uint32_t pages = 0;
};
struct SetBudget {
  Origin origin;
  SessionId session;
  uint32_t budget_pages = 0;
};
struct SetMode {
  Origin origin;
  SessionId session;
  Mode mode = Mode::kExact;
};
// Keeps the first `tokens` positions, rounded down to a page. Replies Done.
struct Truncate {
  Origin origin;
  SessionId session;
  uint32_t tokens = 0;
};
struct Park {
  Origin origin;
  SessionId session;
  SessionState state = SessionState::kWaitingTool;
};
// Replies Done at once; the session may compute again from the Ready notice on.
struct Unpark {
  Origin origin;
  SessionId session;
};
// Replies RepairReply and brings missing pages back.
struct Repair {
  Origin origin;
  SessionId session;
};

// One observation: attention masses of the set that was visible in that step.
struct Observe {
  Origin origin;
  SessionId session;
  uint64_t step = 0;      // accepted generated tokens so far
  uint32_t position = 0;  // tokens written so far; 0: not said
  uint32_t queries = 0;   // 0: no masses, only the step count
  double sink = 0;
  double tail = 0;
  double rest = 0;
  std::vector<std::pair<PageIndex, double>> masses;
};
// The engine gave up pages that were asked; `fence`: the last step that read them.
struct GaveUp {
  Origin origin;
  SessionId session;
  DecisionId decision;
  std::vector<PageIndex> pages;
  Fence fence;
  uint32_t position = 0;  // tokens written when it gave them up
};
// Answer to a Withdraw notice: the pages that the engine still maps.
struct Kept {
  Origin origin;
  SessionId session;
  std::vector<PageIndex> pages;
};
// The engine has mapped restored pages.
struct Resident {
  Origin origin;
  SessionId session;
  std::vector<PageIndex> pages;
  std::vector<uint32_t> generations;  // of the slots it mapped
  uint32_t position = 0;
};
// A reader's fence that is open: the page is in use until it passes.
struct ReadFence {
  Origin origin;
  SessionId session;
  std::vector<PageIndex> pages;
  Fence fence;
};

// ---- what anybody may ask ----------------------------------------------------------------------
struct EvictPages {
  Origin origin;
  SessionId session;
  std::vector<PageIndex> pages;
};
// Replies RestoreReply when every page has its answer.
struct RestorePages {
  Origin origin;
  SessionId session;
  std::vector<PageIndex> pages;
  std::vector<uint32_t> blocks;  // engine placement: where to
};
struct CancelRestore {
  Origin origin;
  RequestId restore;  // the request of the RestorePages
};
// Content is asked for by keys that the edge has hashed; `tokens` are compared on a hit.
// Tokens behind the last whole page of what was asked for: nothing can be found for them.
enum class Tail : uint8_t { kNone, kPartial };
// Replies LookupReply. No side effect.
struct Lookup {
  Origin origin;
  LayoutRef layout;
  std::vector<PageKey> keys;
  std::vector<TokenId> tokens;  // keys.size() * page_tokens
  Tail tail = Tail::kNone;
};
// Replies AcquireReply. With a session the pages are mapped into it from its end on.
struct Acquire {
  Origin origin;
  LayoutRef layout;
  SessionId session;  // 0: a lease only
  std::vector<PageKey> keys;
  std::vector<TokenId> tokens;
  Tail tail = Tail::kNone;
};
struct Release {
  Origin origin;
  LeaseId lease;
};
// Replies PressureReply once `pages` slots are free.
struct Pressure {
  Origin origin;
  uint32_t pages = 0;
};
// Drops replicas in one tier: of given pages of a session, or (session 0) of all unreferenced
// entries of the tenant. Replies DropReply.
struct Drop {
  Origin origin;
  SessionId session;
  std::vector<PageIndex> pages;
  Tier tier = Tier::kHost;
  enum class Reach : uint8_t { kOneTier, kAllTiers } reach = Reach::kOneTier;
};
// The daemon drains: no new sessions or engines, engines are told.
struct Drain {
  Origin origin;
};

// ---- completions (never refused)
// -----------------------------------------------------------------
struct CopyDone {
  CopyId copy;
  absl::Status status;
  Checksum checksum;  // of the bytes that were copied or verified
};
struct FencePassed {
  EngineId engine;
  Fence fence;
};
// A slab that CreateSlab asked for is not there: its slots never existed, grants in it are void.
struct SlabFailed {
  SlabId slab;
  absl::Status status;
};
// Time passed: deadlines, leases, TTLs. Ledger::next_deadline() says when one is due.
struct Tick {};

using Event = std::variant<Attach, Reattach, Disconnected, Silence, EngineGone, Leave, SlabUnmapped,
                           OpenSession, ResumeSession, ForkSession, CloseSession, Extend, Written,
                           Seal, Tag, Untag, EndGroup, Hint, Supersede, Pin, Unpin, SetBudget,
                           SetMode, Truncate, Park, Unpark, Repair, Observe, GaveUp, Kept, Resident,
                           ReadFence, EvictPages, RestorePages, CancelRestore, Lookup, Acquire,
                           Release, Pressure, Drop, Drain, CopyDone, FencePassed, SlabFailed, Tick>;

}  // namespace memdecay::ledger
