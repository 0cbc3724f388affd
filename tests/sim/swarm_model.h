// What the swarm knows of the world by itself: which bytes every page of every session must have,
// where its engine sees it, and what was asked and not yet answered. The oracle of the simulation:
// it never reads the ledger's state.
// Thread: values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "daemon/ledger/events.h"
#include "proto/contract/ids.h"
#include "proto/contract/vocabulary.h"
#include "tests/sim/sim_bytes.h"

namespace memdecay::sim {

inline constexpr uint32_t kSwarmPageTokens = 4;
inline constexpr uint64_t kSwarmPageBytes = 96;
inline constexpr uint32_t kSwarmDocuments = 3;

ledger::LayoutRef swarm_layout();

// The bytes of a page: every word depends on the seed and on its own place.
PageBytes pattern(uint64_t seed);
Checksum checksum_of_pattern(uint64_t seed);
// The token of a document at a position, and one number for a run of tokens after another.
TokenId token_of(uint32_t document, uint32_t position);
std::vector<TokenId> page_of(uint32_t document, size_t page);
uint64_t extend_chain(uint64_t chain, std::span<const TokenId> tokens);

struct ModelPage {
  enum class Phase : uint8_t { kGranted, kWritten, kSealing, kSealed };
  Phase phase = Phase::kGranted;
  uint64_t seed = 0;
  std::vector<TokenId> tokens;
  enum class Purity : uint8_t { kExact, kTainted } purity = Purity::kExact;
  std::optional<SlotRef> slot;      // where the engine reads it
  std::optional<SlotRef> arriving;  // told by Restore, not answered
  std::optional<DecisionId> asked;
  enum class Bytes : uint8_t { kSomewhere, kLost } bytes = Bytes::kSomewhere;
};

struct ModelSession {
  SessionId id;
  TenantId tenant;
  EngineId engine;  // 0: nobody has it
  Mode mode = Mode::kExact;
  uint32_t document = 0;
  std::vector<ModelPage> pages;
  enum class Turn : uint8_t { kFree, kWaits } turn = Turn::kFree;  // one structural call at a time
  uint64_t step = 0;
  enum class Works : uint8_t { kYes, kNo } works = Works::kYes;  // no: parked, or waits for Ready

  size_t sealed() const;  // pages at the start that are sealed or sealing
  // Of all pages' tokens. Equal tokens of two tenants have other bytes: what crosses is seen.
  uint64_t chain() const;
  bool tainted() const;  // what is computed now would be approximate
};

// A step of an engine that still reads (or finishes writing) a slot until it signals the fence.
struct OpenUse {
  enum class Kind : uint8_t { kReads, kWrites };
  Kind kind = Kind::kReads;
  SlotRef slot;
  uint64_t seed = 0;
};
struct OpenFence {
  Fence fence;
  std::vector<OpenUse> uses;
};

struct ModelEngine {
  EngineId id;
  TenantId tenant;
  Epoch epoch;
  enum class Life : uint8_t { kAlive, kDisconnected, kGone } life = Life::kAlive;
  std::vector<OpenFence> fences;
};

}  // namespace memdecay::sim
