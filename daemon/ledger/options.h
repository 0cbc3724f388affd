// What the ledger is told by the configuration. The server reads it from YAML, the scenario runner
// from `daemon key=value`; defaults here are the product's.
// Thread: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/policy/layers.h"
#include "daemon/policy/options.h"
#include "proto/contract/clock.h"
#include "proto/contract/vocabulary.h"

namespace memdecay::ledger {

struct TenantOptions {
  std::string name = "default";
  uint32_t reservation_pages = 0;               // nobody else's pressure takes it below this
  uint32_t limit_pages = 0;                     // 0: the pool is the limit
  int32_t priority = 0;                         // a higher one leaves later
  std::optional<policy::PolicyOptions> policy;  // of its sessions; not given: Options::policy
};

// How a tier orders what no living session references, and what is not worth a place in it.
struct RetentionSettings {
  enum class By : uint8_t { kDecay, kLru };
  By device = By::kDecay;
  By host = By::kDecay;
  uint32_t salt = 0;  // chooses the keys from which H is learned
  // What computing a token again takes, and what a restore moves a second. 0: not known. Where
  // either is unknown everything is admitted; restores are measured where they are not declared.
  uint32_t compute_us_per_token = 0;
  uint64_t restore_bytes_per_s = 0;
};

struct Options {
  uint32_t device_pages = 1024;
  uint32_t slab_pages = 1;
  uint64_t host_bytes = 0;  // 0 with host_pages 0: no such tier
  uint32_t host_pages = 0;  // counted in pages when > 0, whatever their size
  uint32_t page_tokens = 16;
  uint32_t watermark_high_percent = 100;  // above it the tier is emptied to the low mark
  uint32_t watermark_low_percent = 100;
  uint32_t sinks = 4;             // tokens
  uint32_t recent = 2;            // pages
  uint32_t ahead = 0;             // likely victims to keep clean
  uint32_t pin_budget_pages = 0;  // explicit pins per tenant; 0: no limit but the pool
  uint32_t orphan_limit = 256;
  Mode mode = Mode::kExact;  // the mode of sessions that do not say
  enum class LossyAllowed : uint8_t { kNo, kYes } lossy_allowed = LossyAllowed::kYes;
  policy::PolicyOptions policy;  // of new sessions: living ones keep theirs
  policy::Presets presets;       // that a session may name
  RetentionSettings retention;
  Duration lease = Duration::from_milliseconds(2000);
  Duration orphan_ttl = Duration::from_seconds(600);
  Duration pin_ttl_cap = Duration::from_seconds(3600);  // limits.pin_ttl_s
  Duration ack_late =
      Duration::from_milliseconds(1000);                 // limits.ack_ms: then others are asked too
  Duration request = Duration::from_milliseconds(5000);  // limits.request_ms: a waiting request
  Duration restore = Duration::from_milliseconds(5000);  // limits.restore_ms
  Duration pending = Duration::from_milliseconds(2000);  // limits.pending_ms
  uint32_t regret_steps = 64;  // limits.regret_steps: wanted again so soon, leaving was a mistake
  Duration regret = Duration::from_milliseconds(5000);      // limits.regret_ms: of waiting sessions
  Duration copy_lost = Duration::from_milliseconds(30000);  // limits.copy_lost_ms
  std::vector<TenantOptions> tenants = {TenantOptions{}};   // TenantId 1 is tenants[0]
};

}  // namespace memdecay::ledger
