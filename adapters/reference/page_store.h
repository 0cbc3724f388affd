// Where a sequence's pages live, seen by the code that computes it.
//
// Why: the same program decodes out of slots that memdecayd owns (daemon_store.h) and out of its
// own memory (private_store.h), so that what the daemon adds or costs can be told from the rest.
// Thread: one thread uses a store.
// Invariants: page i holds positions [i * page_tokens, (i + 1) * page_tokens) for ever; between
// begin_step and end_step the table stands still; sealed pages are never written again.
// Not here: what only a daemon can do (evict, restore, budgets): DaemonStore itself.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "adapters/reference/attention_mass.h"
#include "adapters/reference/kv_page.h"
#include "proto/contract/ids.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::reference {

// Places at which an engine process is worth killing; told to a hook, for tests and traces.
enum class Phase : uint8_t { kGrant, kWrite, kSeal, kAcknowledge, kRestore };
inline constexpr int kPhases = 5;
std::string_view phase_name(Phase phase);
using PhaseHook = std::function<void(Phase)>;

// What the engine says about pages that it seals. kUnsaid: nothing missing as far as it saw.
enum class Holes : uint8_t { kNone, kSome, kUnsaid };

// Prefill steps are few and see much: their attention is always worth reporting.
enum class Work : uint8_t { kPrefill, kDecode };

// What becomes of a step's masses. kLater: they are part of the next report.
enum class Masses : uint8_t { kIgnored, kLater, kReported };

struct StepReport {
  uint64_t step = 0;      // accepted generated tokens so far
  uint32_t position = 0;  // tokens written so far
  const PageMasses* masses = nullptr;
};

struct PageTag {
  uint32_t begin = 0;  // token positions, half open
  uint32_t end = 0;
  Region region = Region::kUser;
};

struct PageCounts {
  uint32_t pages = 0;
  uint32_t resident = 0;
  uint32_t holes = 0;
  uint32_t approximate = 0;
};

class PageStore {
 public:
  virtual ~PageStore() = default;

  // `pages` more at the end, zeroed. May wait until others give way; resource_exhausted after that.
  virtual absl::Status extend(uint32_t pages) = 0;
  virtual absl::Status begin_step() = 0;
  // Valid until the next call.
  virtual absl::StatusOr<PageTable> table() = 0;
  virtual Masses masses_wanted(Work work) const = 0;
  // Whole pages from `first` on, page_tokens ids each. Inside a step.
  virtual absl::Status seal(PageIndex first, std::span<const TokenId> tokens, Holes holes) = 0;
  virtual absl::Status end_step(const StepReport& report) = 0;
  // Keeps the first `tokens` positions, a whole number of pages.
  virtual absl::Status truncate(size_t tokens) = 0;

  virtual absl::Status tag(std::span<const PageTag> tags) = 0;
  virtual absl::Status park(SessionState why) = 0;
  // Waits until the sequence may be computed again.
  virtual absl::Status unpark() = 0;
  // After a step that found a page missing: waits until all are there that the mode demands.
  virtual absl::Status await_pages() = 0;
  virtual absl::StatusOr<PageCounts> counts() = 0;
};

}  // namespace memdecay::reference
