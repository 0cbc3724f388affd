// Every bound of the daemon in one place, with what happens when it is reached, related by
// static_assert so that no two contradict each other. Sizes that an operator chooses (pages, bytes,
// deadlines) are configuration (ledger/options.h); these are not.
// Thread: constants.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/contract/clock.h"
#include "proto/contract/layout.h"
#include "proto/contract/timeline_page.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::base::limits {

// ---- one message of an engine or caller: beyond it invalid_argument or out_of_range -------------
inline constexpr size_t kMessageBytes = size_t{16} << 20;  // gRPC refuses larger ones
inline constexpr uint32_t kTokensAMessage = 1u << 20;      // seal, lookup, acquire
inline constexpr size_t kPolicyOptions = 1024;             // open: keys of a policy
inline constexpr size_t kOptionBytes = 1024;               // one key or value of them
inline constexpr uint32_t kPagesARequest = 1u << 16;       // extend, seal, restore, evict, masses
inline constexpr uint32_t kMassesAnObservation = kPagesARequest;
inline constexpr uint32_t kSpansAMessage = 1u << 14;  // tags
inline constexpr uint32_t kExtrasAMessage = 64;       // media ids, salts
inline constexpr uint32_t kExtraBytes = 4096;
inline constexpr uint32_t kNameBytes = 256;       // sessions, engines, tenants
inline constexpr uint32_t kEventsAMessage = 256;  // parts of one stream message
inline constexpr uint32_t kRegions = 64;          // built-in and user-defined

// ---- what exists at once: beyond it resource_exhausted or quota
// ----------------------------------
inline constexpr uint32_t kTenants = 256;
inline constexpr uint32_t kEngines = 1024;
inline constexpr uint32_t kMembersAnEngine = 64;
inline constexpr uint32_t kSessions = 1u << 16;
inline constexpr uint32_t kPagesASession = 1u << 20;
inline constexpr uint32_t kPagesASlab = 1u << 16;
inline constexpr uint32_t kDevicePages = 1u << 24;

// ---- the reactor
// ----------------------------------------------------------------------------------
inline constexpr size_t kStreamLane = 4096;   // full: streams are not read until half is free
inline constexpr size_t kRequestLane = 1024;  // full: unavailable, retry after kRetry
inline constexpr Duration kRetry = Duration::from_milliseconds(20);
inline constexpr uint32_t kStreamStepsARequest = 16;  // a waiting request gets its turn after these
// A deadline that is still due after its Tick is tried again after this, never at once.
inline constexpr Duration kTickAgain = Duration::from_milliseconds(1);
inline constexpr Duration kLongestSleep = Duration::from_seconds(60);

// ---- movers
// ------------------------------------------------------------------------------------------
inline constexpr uint32_t kCopiesInFlight = 4096;  // full: the copy fails with resource_exhausted
// ---- fences
// ------------------------------------------------------------------------------------------
inline constexpr uint32_t kWatchedFences = 1u << 16;  // of one engine; beyond it: never passes
inline constexpr Duration kFencePoll = Duration::from_milliseconds(1);

// ---- host tier
// ---------------------------------------------------------------------------------------
inline constexpr uint64_t kHostChunkBytes = uint64_t{32} << 20;  // arena grows by this or one page

// ---- edges
// -------------------------------------------------------------------------------------------
inline constexpr uint32_t kNoticesQueued = 1u << 14;  // of one engine that does not read: it is cut
inline constexpr uint32_t kCallsInFlight = 1024;      // unary calls; beyond it unavailable

// ---- recordings: one at a time ------------------------------------------------------------------
inline constexpr size_t kTapeBytes = size_t{32} << 20;  // not written yet; full: events are lost
inline constexpr size_t kTapeChunkBytes = size_t{1} << 20;  // of lines in one message, about
inline constexpr Duration kTapeBeat = Duration::from_milliseconds(100);  // a message at least
inline constexpr Duration kTapeLongest = Duration::from_seconds(24 * 3600);
inline constexpr uint64_t kTapeMostBytes = uint64_t{64} << 30;

static_assert(kTapeChunkBytes + 24 * uint64_t{kMassesAnObservation} < kMessageBytes,
              "the longest line still fits a chunk's message");
static_assert(uint64_t{kTokensAMessage} * 5 < kMessageBytes,
              "a varint token id is 5 bytes at most");
static_assert(uint64_t{kMassesAnObservation} * 16 < kMessageBytes);
static_assert(kTokensAMessage >= kMaxPageTokens, "the largest page fits a message");
static_assert(kPagesARequest <= kPagesASession && kPagesASession <= kDevicePages);
static_assert(kPagesASlab <= kPagesARequest, "a whole slab can be granted at once");
static_assert(kEventsAMessage < kStreamLane / 2, "a message fits the lane once it has room again");
static_assert(kCallsInFlight <= kRequestLane, "an admitted call finds room in the lane");
static_assert(kStreamStepsARequest < kStreamLane);
static_assert(kRegions >= kBuiltInRegions && kRegions <= 0xffff);
static_assert(kEngines * size_t{kTimelineBytes} * kMembersAnEngine <= size_t{1} << 30);

}  // namespace memdecay::base::limits
