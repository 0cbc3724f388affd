// The ledger's tables: tenants, engines, slabs with their slots, contents (sealed pages wherever
// their bytes are), sessions with their page views, copies in flight, requests that wait, leases,
// and the ring of decisions. Plain data; rules live in the files named after what they do.
//
// Two state tables, never one: View::state is a page in a session, Slot::state a replica on the
// device. A content may be seen by several views and have a device and a host replica.
// Thread: the ledger's. Iteration order is by id everywhere: same events, same decisions.
// Not here: any rule; transitions.h has the legal moves.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "daemon/ledger/effects.h"
#include "daemon/ledger/events.h"
#include "daemon/ledger/options.h"
#include "daemon/ledger/report.h"
#include "daemon/ledger/tape.h"
#include "daemon/policy/policy.h"
#include "daemon/policy/retention/ghosts.h"
#include "daemon/policy/retention/history.h"
#include "daemon/policy/retention/order.h"
#include "daemon/policy/retention/retention.h"
#include "daemon/policy/survival.h"

namespace memdecay::ledger {

using OpId = Id<struct OpTag>;  // a restore or a wake-up in progress

struct ViewRef {
  SessionId session;
  PageIndex page = 0;
  constexpr auto operator<=>(const ViewRef&) const = default;
};

struct Slot {
  SlotState state = SlotState::kFree;
  uint32_t generation = 0;
  ContentId content;         // valid, copying_out, copying_in
  ViewRef holder;            // reserved: the granted page
  EngineId writer;           // reserved, quarantined: who may still write it
  uint32_t open_fences = 0;  // quarantined: fences to pass before it is free
  CopyId copy;               // quarantined: a lost copy that may still write it
};

struct Slab {
  enum class Life : uint8_t { kActive, kRetiring };
  SlabId id;
  TenantId tenant;
  NamespaceId name_space;
  uint64_t page_bytes = 0;
  Life life = Life::kActive;
  EngineId buffer_of;  // engine placement: whose buffer it is
  uint32_t used = 0;   // slots that are not free
  std::vector<Slot> slots;
  absl::btree_map<EngineId, ShareSlab::Access> mappers;
  absl::btree_set<EngineId> unmap_asked;
};

enum class HostState : uint8_t { kNone, kWriting, kValid };

// Where a content stands in the order in which things leave a tier: the smallest goes first.
using Rank = retention::Place;

// What is remembered of a content for the time when no living session references it (keep.h).
struct Worth {
  retention::EntryKey parent = 0;  // key of the page before it; 0: none, or it has no key itself
  double uses = 0;                 // that fade, as of the last one; 0: never told
  double log2_b = kUnknown;        // most that a session said of it or of a page behind it
  bool stood = false;              // in an order: its first use, being stored, was told
  bool cut_off = false;            // the page before it is gone: it cannot be found any more
  static constexpr double kUnknown = -1e9;
};

struct Content {
  ContentId id;
  TenantId tenant;
  LayoutRef layout;
  PageIndex page = 0;
  SessionId sealed_by;
  std::vector<TokenId> tokens;
  PageView::Exactness exactness = PageView::Exactness::kExact;
  std::optional<PageKey> key;  // exact only
  uint64_t prefix_print = 0;   // of all tokens up to its end; compared on a hit with `tokens`
  bool indexed = false;        // Lookup finds this one; false with a key: a twin, or a collision
  RegionId region = 0;         // of most of its tokens, for counting
  std::optional<Checksum> checksum;
  bool verified = false;        // device bytes were compared with the checksum
  bool leaving = false;         // its last views are being given up, then it leaves the device
  std::optional<SlotRef> slot;  // device replica, or where it is being copied in
  bool slot_valid = false;      // the bytes are in the slot
  HostState host = HostState::kNone;
  CopyId copy;                // copies on one content are serialised
  bool store_failed = false;  // a copy to the host failed a moment ago: it stays for now
  uint32_t open_fences = 0;   // readers or give-ups whose fence has not passed
  uint32_t leases = 0;
  Instant touched;
  Worth worth;
  std::vector<ViewRef> views;
  std::optional<Rank> device_rank;  // set while it is in State::unreferenced
  std::optional<Rank> host_rank;    // set while it is in State::host_order
};

// When a page was last chosen to leave a session's view (regret.h).
struct Departure {
  Reason why = Reason::kAdmin;
  bool open = false;  // by choice, and not wanted again yet
  bool idle = false;  // its session was waiting
  uint64_t step = 0;
  Instant when;
  uint32_t regrets = 0;  // one after the other
};

struct View {
  PageState state = PageState::kGranted;
  SlotRef slot;       // granted, filling
  ContentId content;  // from sealing on
  PageView::Exactness exactness = PageView::Exactness::kExact;
  uint32_t fences = 0;             // sealing, given_up: still open
  DecisionId decision;             // asked
  std::optional<Instant> ask_due;  // asked: when the answer is late
  bool late = false;               // its answer is overdue: others are asked too
  bool announced = false;          // restoring: the engine was told, its Resident is awaited
  bool left_idle = false;          // a hole because the session was idle: comes back with it
  Departure departure;
  bool pinned = false;
  std::optional<Instant> pin_until;  // with ttl
  OpId op;                           // restoring
};

struct AtomicSpan {
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct Session {
  SessionId id;
  std::string name;
  TenantId tenant;
  EngineId engine;  // 0: closed or orphaned
  LayoutRef layout;
  Mode mode = Mode::kExact;
  SessionState state = SessionState::kDecoding;
  bool ready = true;    // may compute
  bool parked = false;  // by its engine, until it says unpark or somebody resumes it
  uint32_t budget_pages = 0;
  bool over_budget = false;  // being trimmed
  int32_t priority = 0;
  RegionId default_region = 0;
  std::unique_ptr<policy::Policy> policy;
  std::vector<View> pages;
  std::vector<TokenId> tokens;                      // of sealed pages
  std::vector<PageKey> keys;                        // of sealed pages, exact prefix only
  std::vector<uint64_t> prints;                     // prefix prints of sealed pages
  std::vector<std::pair<uint32_t, RegionId>> tags;  // (begin, region) runs, ascending; see tags.h
  std::vector<AtomicSpan> atomics;
  uint32_t sealed_pages = 0;  // a prefix of pages: seals come in order
  uint32_t position = 0;      // tokens written, as far as the engine has said
  bool tail_tainted = false;  // tokens after the last seal were computed with a hole
  std::optional<PageIndex> first_approximate;
  uint64_t step = 0;
  Instant state_since;
  Instant opened;                  // the zero of its policy's seconds; a fork has its parent's
  Instant waited_until;            // what it waited is counted up to here (State::survival)
  std::optional<Instant> expires;  // closed or orphaned
  OpId wake;                       // the op that brings it back
};

// The slots of one tenant and layout that can be handed out.
struct PoolKey {
  TenantId tenant;
  NamespaceId name_space;
  constexpr auto operator<=>(const PoolKey&) const = default;
};

struct Engine {
  EngineId id;
  Epoch epoch;
  TenantId tenant;
  std::string name;
  EngineState state = EngineState::kAlive;
  Placement placement = Placement::kDaemon;
  uint32_t late_answers = 0;  // pages whose answer is overdue: nothing more is asked of it
  uint32_t blocks = 0;        // engine placement: of its buffer
  Purpose purpose = Purpose::kDecode;
  SlabId buffer;  // made when its first session names the layout
};

struct Tenant {
  TenantId id;
  TenantOptions options;
  uint32_t reservation_pages = 0;  // as it is in force (scaled after a shrink)
  uint32_t used = 0;               // slots that are not free
  uint32_t pins = 0;               // explicitly pinned pages
};

struct Copy {
  StartCopy what;
  std::optional<Instant> due;  // the timer that watches it
  Instant begun;
  OpId op;                 // restore: who waits
  bool abandoned = false;  // nobody waits any more; its target stays quarantined until it ends
};

// A request that waits for slots.
struct Waiter {
  enum class Kind : uint8_t { kExtend, kPressure, kOp };
  Kind kind = Kind::kExtend;
  RequestId request;
  TenantId tenant;
  SessionId session;
  OpId op;
  uint32_t need = 0;
  std::vector<uint32_t> blocks;
  std::optional<Instant> deadline;
};

// Pages that come back together: an explicit restore, an acquire, or a session's wake-up.
struct RestoreOp {
  enum class Purpose : uint8_t { kRestore, kAcquire, kWake };
  OpId id;
  Purpose purpose = Purpose::kRestore;
  RequestId request;  // kRestore, kAcquire
  SessionId session;
  bool admitted = false;             // has its slots
  absl::btree_set<PageIndex> pages;  // still to come
  std::vector<uint32_t> blocks;      // engine placement: where to
  RestoreReply result;
  std::optional<Instant> due;
};

// An acquire that waits until device replicas were compared with their checksums; then it is looked
// at again.
struct PendingAcquire {
  Acquire what;
  absl::btree_set<CopyId> verifying;
  bool failed = false;
  int rounds = 0;  // comparisons that were begun for it
};

struct Lease {
  LeaseId id;
  TenantId tenant;
  EngineId engine;
  Instant expires;
  std::vector<ContentId> contents;
};

struct FenceWatch {
  enum class Why : uint8_t { kSeal, kGiveUp, kRead, kSlot };
  Why why = Why::kSeal;
  ViewRef view;
  ContentId content;
  SlotRef slot;
};

struct Timer {
  enum class Kind : uint8_t {
    kWaiter,
    kAsk,
    kOp,
    kCopy,
    kCopyLost,
    kLease,
    kPin,
    kOrphan,
    kStoreAgain
  };
  Instant when;
  Kind kind = Kind::kWaiter;
  uint64_t id = 0;
  PageIndex page = 0;
  constexpr auto operator<=>(const Timer&) const = default;
};

// Index key: the tenant and as many bits of the key as count.
struct IndexKey {
  TenantId tenant;
  PageKey key;
  bool operator==(const IndexKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const IndexKey& index) {
    return H::combine(std::move(state), index.tenant, index.key);
  }
};
struct Entry {
  ContentId first;
  std::vector<ContentId> twins;  // same content, sealed later
};

struct Counters {
  absl::btree_map<std::string, double> values;  // "evictions_total|region=user|reason=budget"
};

// What is known of uses, for every tier and for each (keep.h).
struct Keep {
  std::optional<retention::History> uses;  // of keys, whether or not their bytes are anywhere
  std::optional<retention::Ghosts> device;
  std::optional<retention::Ghosts> host;  // none: no such tier, or its pages' size is not known
  size_t host_entries = 0;                // that the host's ghosts stand for
  uint64_t page_bytes = 0;                // of pages told lately, about
  Instant last;                           // the last use told
  Instant last_restore;                   // that was completed
  double restored_bytes = 0;              // and the time that took, forgetting
  double restoring_ns = 0;
};

struct RegionTally {
  uint64_t evictions = 0;  // views that left by choice
  uint64_t regrets = 0;
  uint64_t idle_regrets = 0;
};
struct Tallies {
  absl::btree_map<RegionId, RegionTally> regions;
  uint64_t thrashes = 0;
  uint64_t asked = 0;  // views that engines were asked to give up
};

struct State {
  Options options;
  absl::btree_map<TenantId, Tenant> tenants;
  absl::btree_map<EngineId, Engine> engines;
  absl::btree_map<SlabId, Slab> slabs;
  absl::btree_map<ContentId, std::unique_ptr<Content>> contents;
  absl::btree_map<SessionId, std::unique_ptr<Session>> sessions;
  absl::btree_map<std::pair<TenantId, std::string>, SessionId> names;
  absl::flat_hash_map<IndexKey, Entry> index;
  absl::btree_map<CopyId, Copy> copies;
  absl::btree_map<OpId, RestoreOp> ops;
  absl::btree_map<LeaseId, Lease> leases;
  std::deque<Waiter> waiters;
  std::vector<PendingAcquire> acquires;
  absl::btree_map<std::pair<EngineId, Fence>, std::vector<FenceWatch>> fences;
  absl::btree_set<Timer> timers;
  absl::btree_map<PoolKey, absl::btree_set<std::pair<SlabId, uint32_t>>> free;  // active slabs
  absl::btree_map<PoolKey, absl::btree_set<SlabId>> empty;  // active slabs with nothing in use
  uint32_t retiring_pages = 0;                              // in retiring slabs
  retention::Order unreferenced;                            // on the device, mapped by nobody
  retention::Order host_order;                              // host replicas
  Keep keep;                                                // uses of keys, H of each tier
  absl::btree_set<std::pair<retention::EntryKey, ContentId>> children;  // by the page before
  absl::btree_set<ContentId> leaving;    // on their way out of the device
  std::deque<DecisionReport> decisions;  // the last kDecisions
  std::unique_ptr<Tape> tape;            // while somebody records
  Counters counters;
  Tallies tallies;
  uint32_t used_slots = 0;        // not free, in active slabs
  uint32_t slab_pages_total = 0;  // pages in all slabs, retiring ones included
  uint32_t host_used_pages = 0;
  uint64_t host_used_bytes = 0;
  int key_bits = 256;
  bool draining = false;
  bool tells_time = false;    // some session's policy counts seconds
  Instant now;                // of the step that runs
  policy::Survival survival;  // how waiting sessions resume
  uint64_t next_id = 1;
  uint32_t next_generation = 1;  // one count for all slots: a generation names one tenancy
  uint32_t next_slab = 1;
  uint64_t next_decision = 1;
};

}  // namespace memdecay::ledger
