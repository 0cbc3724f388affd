// Uses, worths, families and what pays (see keep.h).
#include "daemon/ledger/keep.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "daemon/ledger/contents.h"
#include "daemon/ledger/pages.h"
#include "daemon/policy/math.h"
#include "daemon/policy/retention/ladder.h"

namespace memdecay::ledger {
namespace {

constexpr size_t kCutOffAStep = 1024;  // pages behind a lost one; the rest when those leave
constexpr double kRestoresRemembered = 1u << 30;  // bytes; then half of them are forgotten
constexpr uint64_t kSizesRemembered = 64;         // pages that the mean size is of, about

// 64 bits of the page key, another number for every tenant: no tenant's uses count for another.
retention::EntryKey entry_key(TenantId tenant, const PageKey& key) {
  uint64_t bits = 0;
  std::memcpy(&bits, key.bytes.data(), sizeof bits);
  return bits ^ (tenant.value * 0x9e3779b97f4a7c15u);
}

double log2_b(absl::Span<const policy::RegionParameters> regions, RegionId region) {
  const double b = region < regions.size() ? regions[region].b : policy::RegionParameters{}.b;
  return policy::fixed_log2(b);
}

// The host tier in entries; 0: no such tier, or pages of unknown size.
size_t host_entries(const State& state) {
  const Options& options = state.options;
  if (options.host_pages > 0) return options.host_pages;
  if (state.keep.page_bytes == 0) return 0;
  return static_cast<size_t>(options.host_bytes / state.keep.page_bytes);
}

void size_ghosts(const State& state, std::optional<retention::Ghosts>& ghosts, size_t entries) {
  if (entries == 0) {
    ghosts.reset();
  } else if (ghosts.has_value()) {
    ghosts->resize(entries);
  } else {
    retention::RetentionOptions options;
    options.capacity = entries;
    options.salt = state.options.retention.salt;
    ghosts.emplace(options);
  }
}

// A tier that counts bytes holds more or fewer pages as their size changes.
void note_size(State& state, const Content& content) {
  Keep& keep = state.keep;
  const uint64_t bytes = content.layout.page_bytes;
  keep.page_bytes = keep.page_bytes == 0
                        ? bytes
                        : (keep.page_bytes * (kSizesRemembered - 1) + bytes) / kSizesRemembered;
  const size_t entries = host_entries(state);
  const size_t apart = std::max(entries, keep.host_entries) - std::min(entries, keep.host_entries);
  if (apart * 8 > keep.host_entries) size_keep(state);
}

void count_use(State& state, UsedFrom from) {
  const bool device = from == UsedFrom::kDevice;
  count(state, device ? "retention_hits_total" : "retention_misses_total", "tier=device");
  if (device || !host_tier_exists(state)) return;
  const bool host = from == UsedFrom::kHost;
  count(state, host ? "retention_hits_total" : "retention_misses_total", "tier=host");
}

// All that stand behind the page, the nearest first.
enum class Parent : uint8_t { kThere, kGone };
void tell_children(State& state, retention::EntryKey parent, Parent now) {
  std::vector<ContentId> behind;
  const auto add = [&](retention::EntryKey key) {
    for (auto it = state.children.lower_bound({key, ContentId{}});
         it != state.children.end() && it->first == key && behind.size() < kCutOffAStep; ++it) {
      behind.push_back(it->second);
    }
  };
  add(parent);
  for (size_t i = 0; i < behind.size(); ++i) {
    Content& child = *state.contents.at(behind[i]);
    child.worth.cut_off = now == Parent::kGone;
    refresh_ranks(state, child);
    if (child.key.has_value()) add(entry_key(child.tenant, *child.key));
  }
}

}  // namespace

void size_keep(State& state) {
  Keep& keep = state.keep;
  keep.host_entries = host_entries(state);
  size_ghosts(state, keep.device, state.options.device_pages);
  size_ghosts(state, keep.host, keep.host_entries);
  const size_t limit = retention::history_limit(state.options.device_pages + keep.host_entries);
  if (keep.uses.has_value()) {
    keep.uses->resize(limit);
  } else {
    keep.uses.emplace(limit, retention::RetentionOptions{}.memory);
  }
}

Duration tier_h(const State& state, Held tier) {
  const auto& ghosts = tier == Held::kDevice ? state.keep.device : state.keep.host;
  return ghosts.has_value() ? ghosts->h() : Duration{};
}

RetentionSettings::By tier_by(const State& state, Held tier) {
  return tier == Held::kDevice ? state.options.retention.device : state.options.retention.host;
}

void tell_use(State& state, Content& content, Instant now, uint64_t chain, UsedFrom from) {
  Keep& keep = state.keep;
  Worth& worth = content.worth;
  if (!content.key.has_value()) return;  // nobody but its session can ask for it
  count_use(state, from);
  note_size(state, content);
  if (worth.log2_b == Worth::kUnknown) {
    worth.log2_b = log2_b(policy::default_regions(), content.region);
  }
  keep.last = std::max(keep.last, now);
  const retention::Use use{.key = entry_key(content.tenant, *content.key),
                           .at = keep.last,
                           .chain = chain,
                           .depth = content.page,
                           .log2_b = worth.log2_b};
  worth.uses = keep.uses->touch(use.key, use.at, [&]() -> retention::Uses {
    return {worth.uses, content.touched.nanoseconds / 1'000'000};
  });
  const int rung = retention::level_rung(worth.uses, worth.log2_b);
  if (keep.device.has_value()) keep.device->use(use, rung);
  if (keep.host.has_value()) keep.host->use(use, rung);
}

void tell_worths(State& state, const Session& session) {
  const auto& regions = session.policy->options().regions;
  const std::optional<PageIndex> lost = first_dropped(session);
  const bool gone =
      lost.has_value() && *lost < session.keys.size() && !findable(state, session, *lost);
  double most = Worth::kUnknown;
  for (PageIndex page = session.sealed_pages; page-- > 0;) {
    Content* content = find_content(state, session.pages[page].content);
    for (const policy::RegionRun& run : region_runs(session, page)) {
      most = std::max(most, log2_b(regions, run.region));
    }
    if (content == nullptr) continue;
    // A page is worth what is behind it, since that cannot be found without it.
    content->worth.log2_b = std::max(content->worth.log2_b, most);
    if (gone && page > *lost) content->worth.cut_off = true;
  }
}

void first_stand(State& state, Content& content) {
  Worth& worth = content.worth;
  if (worth.stood) return;
  worth.stood = true;
  if (worth.parent != 0) state.children.insert({worth.parent, content.id});
  tell_use(state, content, content.touched, content.sealed_by.value, UsedFrom::kNowhere);
}

int16_t level(const State& state, const Content& content, Held tier) {
  if (tier_by(state, tier) == RetentionSettings::By::kLru) return 0;
  const double worth = content.worth.log2_b == Worth::kUnknown ? 0 : content.worth.log2_b;
  return static_cast<int16_t>(retention::level_rung(content.worth.uses, worth));
}

void name_parent(Content& content, const std::optional<PageKey>& parent) {
  if (parent.has_value()) content.worth.parent = entry_key(content.tenant, *parent);
}

void parent_gone(State& state, TenantId tenant, const PageKey& key) {
  tell_children(state, entry_key(tenant, key), Parent::kGone);
}

void parent_back(State& state, TenantId tenant, const PageKey& key) {
  if (!state.children.empty()) tell_children(state, entry_key(tenant, key), Parent::kThere);
}

void leave_family(State& state, const Content& content) {
  if (content.worth.parent != 0) state.children.erase({content.worth.parent, content.id});
}

bool pays(const State& state, const Content& content) {
  const uint64_t compute_us = state.options.retention.compute_us_per_token;
  const double bytes_per_s = restore_bytes_per_s(state);
  if (compute_us == 0 || bytes_per_s <= 0) return true;
  const double restore_us = static_cast<double>(content.layout.page_bytes) / bytes_per_s * 1e6;
  return restore_us <= static_cast<double>(compute_us * content.layout.page_tokens);
}

double restore_bytes_per_s(const State& state) {
  const Keep& keep = state.keep;
  const uint64_t declared = state.options.retention.restore_bytes_per_s;
  if (declared > 0) return static_cast<double>(declared);
  return keep.restoring_ns > 0 ? keep.restored_bytes / keep.restoring_ns * 1e9 : 0;
}

void note_restore(State& state, const Copy& copy, Instant now) {
  Keep& keep = state.keep;
  // Copies in flight at once share the time: each counts from the end of the one before it.
  const Instant from = std::max(copy.begun, keep.last_restore);
  keep.last_restore = now;
  keep.restored_bytes += static_cast<double>(copy.what.bytes);
  keep.restoring_ns += static_cast<double>((now - from).nanoseconds);
  if (keep.restored_bytes < kRestoresRemembered) return;
  keep.restored_bytes /= 2;
  keep.restoring_ns /= 2;
}

std::string admission(const State& state) {
  const uint64_t compute_us = state.options.retention.compute_us_per_token;
  if (compute_us == 0) return "all: retention.compute_us_per_token is not set";
  const double bytes_per_s = restore_bytes_per_s(state);
  if (bytes_per_s <= 0) return "all: no restore has been measured yet";
  return absl::StrFormat("pages of at most %.0f bytes a token (%.1f MB/s, %d us a token)",
                         bytes_per_s * static_cast<double>(compute_us) / 1e6, bytes_per_s / 1e6,
                         compute_us);
}

KeptScore kept_score(const State& state, const Content& content, Held tier, Instant now) {
  const Worth& worth = content.worth;
  const double idle_ns = static_cast<double>((now - content.touched).nanoseconds);
  KeptScore kept;
  kept.terms.reserve(5);
  const auto add = [&kept](const char* name, double value) {
    kept.terms.emplace_back(name, value);
    kept.score += value;
  };
  if (tier_by(state, tier) == RetentionSettings::By::kLru) {
    add("recency_s", -idle_ns * 1e-9);
  } else {
    const int64_t h_ns = tier_h(state, tier).nanoseconds;
    add("recency", h_ns > 0 ? -idle_ns / static_cast<double>(h_ns) : 0);
    add("uses", worth.uses > 1 ? policy::fixed_log2(worth.uses) : 0);
    add("b", worth.log2_b == Worth::kUnknown ? 0 : worth.log2_b);
  }
  kept.terms.emplace_back("cut_off", worth.cut_off ? 1 : 0);
  kept.terms.emplace_back("depth", content.page);
  return kept;
}

}  // namespace memdecay::ledger
