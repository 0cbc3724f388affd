// Names, kinds and help of the metrics (metrics.h). Extend, do not rename: dashboards use them.
#include "daemon/server/metrics.h"

namespace memdecay::server {

std::vector<MetricName> metric_names() {
  using enum MetricKind;
  return {
      {"pages", kGauge, "Pages of sessions, by state."},
      {"device_slots", kGauge, "Slots of the device, by state."},
      {"tier_bytes", kGauge, "Bytes in use in a tier."},
      {"tier_limit_bytes", kGauge, "Most bytes that a tier may use."},
      {"retention_hits_total", kCounter, "Uses that found their page in the tier."},
      {"retention_misses_total", kCounter, "Uses that did not, first ones included."},
      {"retention_h_seconds", kGauge,
       "Recency that one doubling of use is worth when a tier lets go; 0: not asked for."},
      {"evictions_total", kCounter, "Pages that engines were asked to give up."},
      {"restores_total", kCounter, "Pages brought back to the device."},
      {"regret_total", kCounter, "Evicted pages wanted again within limits.regret_steps."},
      {"regret_idle_total", kCounter,
       "Pages that left a waiting session and were wanted within limits.regret_ms."},
      {"thrash_total", kCounter, "Pages regretted twice or more, one time after the other."},
      {"lookups_total", kCounter, "Lookups, by result."},
      {"hit_tokens_total", kCounter, "Tokens found by acquired prefixes."},
      {"store_rejected_total", kCounter, "Pages that a lower tier did not take."},
      {"checksum_failures_total", kCounter, "Replicas whose bytes were not what was stored."},
      {"fence_wait_seconds", kHistogram, "From the wish to use a fenced page to its fence."},
      {"decision_seconds", kHistogram, "Time of one step of the ledger."},
      {"ack_late_total", kCounter, "Evictions acknowledged after limits.ack_ms."},
      {"evict_skipped_total", kCounter, "Pages passed over as victims, by reason."},
      {"pending_expired_total", kCounter, "Lookups that waited for a page in vain."},
      {"leases", kGauge, "Leases held."},
      {"pins_pages", kGauge, "Pages pinned explicitly."},
      {"pin_overflow_total", kCounter,
       "Pages of pinned regions that the pin budget did not carry."},
      {"pages_approximate", kGauge, "Resident pages computed with something missing."},
      {"quarantined_slots", kGauge, "Slots that a dead or late writer may still touch."},
      {"engines", kGauge, "Engines, by state."},
      {"errors_total", kCounter, "Refusals, by code."},
      {"mailbox_depth", kGauge, "Events waiting for the reactor, by lane."},
      {"mailbox_rejected_total", kCounter, "Events that found their lane full."},
      {"copy_bytes_total", kCounter, "Bytes copied, by direction."},
      {"copy_seconds", kHistogram, "From the start of a copy to its end."},
      {"sessions", kGauge, "Sessions, by state and mode."},
  };
}

}  // namespace memdecay::server
