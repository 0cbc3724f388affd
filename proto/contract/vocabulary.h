// The words that tests, tools and users share, as enums with their spelling. Extend, never rename:
// the numbers travel (proto) and the names are metric labels and scenario words.
// Thread: values, any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proto/contract/ids.h"

namespace memdecay {

enum class Region : uint8_t { kSystem, kPlan, kUser, kToolIn, kToolOut, kRetrieval, kScratchpad };
inline constexpr RegionId kBuiltInRegions = 7;
constexpr RegionId region_id(Region region) { return static_cast<RegionId>(region); }

// A page in a session (protocol.md, "Two state tables").
enum class PageState : uint8_t {
  kGranted,
  kFilling,
  kSealing,
  kMapped,
  kAsked,
  kGivenUp,
  kHole,
  kRestoring,
  kDropped,
};
inline constexpr int kPageStates = 9;

// A device slot.
enum class SlotState : uint8_t {
  kFree,
  kReserved,
  kValid,
  kCopyingOut,
  kCopyingIn,
  kQuarantined,
};
inline constexpr int kSlotStates = 6;

enum class Tier : uint8_t { kDevice, kHost, kDisk, kRemote };

enum class SessionState : uint8_t {
  kDecoding,
  kWaitingTool,
  kWaitingUser,
  kPreempted,
  kEnded,
  kOrphaned,
};
inline constexpr int kSessionStates = 6;
enum class Mode : uint8_t { kExact, kLossy };
enum class EngineState : uint8_t { kAlive, kSilent, kDisconnected, kDead };
inline constexpr int kEngineStates = 4;
// Who chooses the slot of a page (protocol.md, "Placement").
enum class Placement : uint8_t { kDaemon, kEngine };

// Why a page was chosen, and why it was not.
enum class Reason : uint8_t {
  kScore,
  kBudget,
  kPoolPressure,
  kTenantOverReservation,
  kSessionIdle,
  kTtl,
  kAdmin,
  kPinned,
  kLeased,
  kInUse,
  kNotSealed,
  kFenceOpen,
  kGrace,
  kRecent,
  kSink,
  kShared,
  kAtomicSpan,
  kExactModeRunning,
  kReservation,
};
inline constexpr int kReasons = 19;

std::string_view region_name(RegionId region);                    // "custom" for a user-defined one
std::optional<RegionId> region_from_name(std::string_view name);  // aliases dialogue, reasoning
std::string_view page_state_name(PageState state);
std::string_view slot_state_name(SlotState state);
std::string_view tier_name(Tier tier);
std::string_view session_state_name(SessionState state);
std::optional<SessionState> session_state_from_name(std::string_view name);
std::string_view mode_name(Mode mode);
std::optional<Mode> mode_from_name(std::string_view name);
std::string_view engine_state_name(EngineState state);
std::string_view reason_name(Reason reason);

}  // namespace memdecay
