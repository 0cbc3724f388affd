// Everything the ledger wants done, as plain values: replies to callers, notices to engines, slabs,
// copies and fence watches. The reactor carries them out after the step, in order; their outcome
// comes back as events. The ledger never waits for one.
// Thread: values; built by the ledger's thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "proto/contract/clock.h"
#include "proto/contract/error.h"
#include "proto/contract/ids.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::ledger {

// One page of a session as its engine must see it.
struct PageView {
  PageIndex page = 0;
  PageState state = PageState::kGranted;
  SlotRef slot;  // valid in granted, filling, sealing, mapped, asked
  enum class Exactness : uint8_t { kExact, kApproximate } exactness = Exactness::kExact;
};

struct RegionSpan {
  uint32_t begin = 0;
  uint32_t end = 0;
  RegionId region = 0;
};

// ---- replies
// -------------------------------------------------------------------------------------
struct Done {};
struct AttachReply {
  EngineId engine;
  Epoch epoch;
};
struct SessionReply {
  SessionId session;
  std::string name;
  uint32_t position = 0;  // tokens in sealed pages
  std::vector<TokenId> tokens;
  std::vector<RegionSpan> regions;
  std::vector<PageView> pages;
  enum class Ready : uint8_t { kNo, kYes } ready = Ready::kYes;  // kNo: wait for the Ready notice
  uint64_t step = 0;
  Mode mode = Mode::kExact;
};
struct GrantReply {
  std::vector<PageView> pages;
};
struct RepairReply {
  enum class Needed : uint8_t { kNo, kYes } needed = Needed::kNo;
  PageIndex first_page = 0;  // recompute from its first token
  uint32_t tokens = 0;       // what that costs
};
struct RestoreReply {
  uint32_t resident = 0;
  std::vector<std::pair<PageIndex, ErrorCode>> failed;
};
struct LookupReply {
  uint32_t pages = 0;         // longest usable exact prefix
  uint32_t device_pages = 0;  // of them on the device, on the host
  uint32_t host_pages = 0;
  uint32_t first_missing = 0;  // == pages; the number of keys when nothing is missing
  enum class Pending : uint8_t {
    kNo,
    kYes
  } pending = Pending::kNo;  // the next page is being written
};
struct AcquireReply {
  LeaseId lease;
  uint32_t pages = 0;  // leased (and mapped or being restored, with a session)
  Instant expires;
  std::vector<PageView> views;  // with a session: mapped ones have slots, others come by Restore
};
struct PressureReply {
  uint32_t free_pages = 0;
};
struct DropReply {
  std::vector<std::pair<Tier, uint32_t>> cleared;  // pages per tier
};

using ReplyBody = std::variant<Done, AttachReply, SessionReply, GrantReply, RepairReply,
                               RestoreReply, LookupReply, AcquireReply, PressureReply, DropReply>;
struct Reply {
  RequestId request;
  absl::Status status;
  ReplyBody body;
};

// ---- notices to engines
// ----------------------------------------------------------------------------
struct EvictNotice {
  DecisionId decision;
  std::vector<std::pair<PageIndex, Reason>> pages;
};
struct WithdrawNotice {
  DecisionId decision;
  std::vector<PageIndex> pages;
};
// The slot is free again, the page is a hole; engine placement: the block is the engine's again.
struct ReleasedNotice {
  std::vector<std::pair<PageIndex, SlotRef>> pages;
};
// Bytes are in the slot: map it and answer Resident.
struct RestoreNotice {
  std::vector<PageView> pages;
};
struct ReadyNotice {};
struct FailedNotice {
  PageIndex page = 0;
  ErrorCode code = ErrorCode::kInternal;
};
struct LostNotice {
  PageIndex page = 0;  // its last replica is gone
};
struct BudgetNotice {
  uint32_t budget_pages = 0;
};
struct ModeNotice {
  Mode mode = Mode::kExact;
};
struct ShutdownNotice {};
// The engine unmaps the slab between two steps and answers SlabUnmapped.
struct UnmapSlabNotice {
  SlabId slab;
};

using NoticeBody = std::variant<EvictNotice, WithdrawNotice, ReleasedNotice, RestoreNotice,
                                ReadyNotice, FailedNotice, LostNotice, BudgetNotice, ModeNotice,
                                ShutdownNotice, UnmapSlabNotice>;
struct Notice {
  EngineId engine;
  SessionId session;  // 0: about the engine
  NoticeBody body;
};

// ---- slabs, copies, fences
// ---------------------------------------------------------------------------
struct CreateSlab {
  SlabId slab;
  TenantId tenant;
  NamespaceId name_space;
  uint64_t page_bytes = 0;
  uint32_t pages = 0;
};
struct DestroySlab {
  SlabId slab;
};
// Sends the slab's descriptor to the engine's members. A later kReadWrite supersedes kReadOnly.
struct ShareSlab {
  EngineId engine;
  SlabId slab;
  enum class Access : uint8_t { kReadOnly, kReadWrite } access = Access::kReadOnly;
};

enum class CopyKind : uint8_t {
  kEvict,    // device slot -> host replica of the content; the slot is leaving
  kStore,    // the same ahead of need: the page stays
  kRestore,  // host replica -> device slot
  kVerify,   // no bytes move: the checksum of a device slot
};
struct StartCopy {
  CopyId copy;
  CopyKind kind = CopyKind::kEvict;
  ContentId content;
  SlotRef slot;
  uint64_t bytes = 0;
};
// The completion is no longer waited for; it may still come and is then ignored.
struct CancelCopy {
  CopyId copy;
};
struct DropHost {
  ContentId content;
};
struct WatchFence {
  EngineId engine;
  Fence fence;
};
// The shadow page table's row of one slot changed.
struct ShadowRow {
  SlotRef slot;
  SlotState state = SlotState::kFree;
  PageKey key;
  Checksum checksum;
};

using Effect = std::variant<Reply, Notice, CreateSlab, DestroySlab, ShareSlab, StartCopy,
                            CancelCopy, DropHost, WatchFence, ShadowRow>;
using Effects = std::vector<Effect>;

}  // namespace memdecay::ledger
