// The spelling of the shared words (see vocabulary.h).
#include "proto/contract/vocabulary.h"

#include <array>

namespace memdecay {
namespace {

constexpr std::array<std::string_view, kBuiltInRegions> kRegionNames = {
    "system", "plan", "user", "tool_in", "tool_out", "retrieval", "scratchpad"};
constexpr std::array<std::string_view, kPageStates> kPageStateNames = {
    "granted", "filling", "sealing", "mapped", "asked", "given_up", "hole", "restoring", "dropped"};
constexpr std::array<std::string_view, kSlotStates> kSlotStateNames = {
    "free", "reserved", "valid", "copying_out", "copying_in", "quarantined"};
constexpr std::array<std::string_view, 4> kTierNames = {"device", "host", "disk", "remote"};
constexpr std::array<std::string_view, kSessionStates> kSessionStateNames = {
    "decoding", "waiting_tool", "waiting_user", "preempted", "ended", "orphaned"};
constexpr std::array<std::string_view, 2> kModeNames = {"exact", "lossy"};
constexpr std::array<std::string_view, kEngineStates> kEngineStateNames = {"alive", "silent",
                                                                           "disconnected", "dead"};
constexpr std::array<std::string_view, kReasons> kReasonNames = {
    "score",         "budget",
    "pool_pressure", "tenant_over_reservation",
    "session_idle",  "ttl",
    "admin",         "pinned",
    "leased",        "in_use",
    "not_sealed",    "fence_open",
    "grace",         "recent",
    "sink",          "shared",
    "atomic_span",   "exact_mode_running",
    "reservation"};

template <typename Value, size_t kCount>
std::optional<Value> find(const std::array<std::string_view, kCount>& names,
                          std::string_view name) {
  for (size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return static_cast<Value>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view region_name(RegionId region) {
  return region < kBuiltInRegions ? kRegionNames[region] : std::string_view("custom");
}

std::optional<RegionId> region_from_name(std::string_view name) {
  if (name == "dialogue") return region_id(Region::kUser);
  if (name == "reasoning") return region_id(Region::kScratchpad);
  return find<RegionId>(kRegionNames, name);
}

std::string_view page_state_name(PageState state) {
  return kPageStateNames[static_cast<size_t>(state)];
}
std::string_view slot_state_name(SlotState state) {
  return kSlotStateNames[static_cast<size_t>(state)];
}
std::string_view tier_name(Tier tier) { return kTierNames[static_cast<size_t>(tier)]; }
std::string_view session_state_name(SessionState state) {
  return kSessionStateNames[static_cast<size_t>(state)];
}
std::optional<SessionState> session_state_from_name(std::string_view name) {
  return find<SessionState>(kSessionStateNames, name);
}
std::string_view mode_name(Mode mode) { return kModeNames[static_cast<size_t>(mode)]; }
std::optional<Mode> mode_from_name(std::string_view name) { return find<Mode>(kModeNames, name); }
std::string_view engine_state_name(EngineState state) {
  return kEngineStateNames[static_cast<size_t>(state)];
}
std::string_view reason_name(Reason reason) { return kReasonNames[static_cast<size_t>(reason)]; }

}  // namespace memdecay
