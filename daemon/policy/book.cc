// Bookkeeping only: every function leaves flags, runs and counts consistent.
// Thread: the owning Policy's.
#include "daemon/policy/book.h"

#include <algorithm>
#include <limits>

#include "daemon/policy/columns.h"
#include "daemon/policy/math.h"
#include "proto/contract/check.h"

namespace memdecay::policy {
namespace {

constexpr PageIndex kMaxPages = PageIndex{1} << 26;  // 10^9 tokens
constexpr double kSupersedeScale = 1.0 / 8.0;
constexpr double kCutScale = 1.0 / 8.0;
constexpr double kMostAdaption = 4.0;

std::vector<RegionRun> merge_adjacent(absl::Span<const RegionRun> runs) {
  std::vector<RegionRun> merged;
  for (const RegionRun& run : runs) {
    if (run.tokens == 0) continue;
    if (!merged.empty() && merged.back().region == run.region) {
      merged.back().tokens = static_cast<uint16_t>(merged.back().tokens + run.tokens);
    } else {
      merged.push_back(run);
    }
  }
  return merged;
}

}  // namespace

PageBook::PageBook(const PolicyOptions& options)
    : regions_(options.regions),
      region_pinned_(options.regions.size(), 0),
      page_tokens_(options.page_tokens),
      sinks_(options.sinks),
      recent_(options.recent),
      sink_pages_((options.sinks + options.page_tokens - 1) / options.page_tokens) {
  for (const RegionParameters& region : regions_) first_half_lives_.push_back(region.half_life);
  if (!options.pinned.has_value()) return;
  for (RegionId region : *options.pinned) region_pinned_[region] = 1;
}

void PageBook::check_sealed(PageIndex page) const { MEMDECAY_CHECK(sealed(page)); }

void PageBook::advance(Step step) {
  now_ = std::max(now_, step);
  time_[static_cast<size_t>(Clock::kTokens)] = static_cast<double>(now_);
}

void PageBook::advance_seconds(double seconds) {
  double& now = time_[static_cast<size_t>(Clock::kSeconds)];
  now = std::max(now, seconds);
}

void PageBook::set_half_life(RegionId region, double half_life) {
  MEMDECAY_CHECK(region < regions_.size() && half_life > 0.0);
  const double first = first_half_lives_[region];
  regions_[region].half_life = std::clamp(half_life, first / kMostAdaption, first * kMostAdaption);
}

void PageBook::seal(PageIndex page, absl::Span<const RegionRun> runs) {
  MEMDECAY_CHECK(page < kMaxPages && !sealed(page));
  if (page >= end()) {
    fit(flags_, page + 1);
    fit(tokens_, page + 1);
    fit(single_, page + 1);
  }
  uint32_t tokens = 0;
  for (const RegionRun& run : runs) tokens += run.tokens;
  MEMDECAY_CHECK(tokens > 0 && tokens <= page_tokens_);
  tokens_[page] = static_cast<uint16_t>(tokens);
  flags_[page] = kSealed | kResident;
  store_runs(page, runs);
  reclassify(page);
}

void PageBook::retag(PageIndex page, absl::Span<const RegionRun> runs) {
  check_sealed(page);
  uint32_t tokens = 0;
  for (const RegionRun& run : runs) tokens += run.tokens;
  MEMDECAY_CHECK(tokens == tokens_[page]);
  store_runs(page, runs);
  reclassify(page);
}

void PageBook::store_runs(PageIndex page, absl::Span<const RegionRun> runs) {
  clear(page, kProtected);
  for (const RegionRun& run : runs) {
    MEMDECAY_CHECK(run.region < regions_.size());
    if (run.tokens > 0 && region_pinned_[run.region] != 0) set(page, kProtected);
  }
  std::vector<RegionRun> merged;
  if (holds_sinks(page)) {
    merged = merge_adjacent(runs);
  } else {
    // Equal content must score equally to the last bit, whatever its order inside the page.
    std::vector<RegionRun> sorted(runs.begin(), runs.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const RegionRun& a, const RegionRun& b) { return a.region < b.region; });
    merged = merge_adjacent(sorted);
  }
  mixed_.erase(page);
  single_[page] = merged.front();
  if (merged.size() > 1) mixed_[page] = std::move(merged);
}

void PageBook::reclassify(PageIndex page) {
  const bool protected_by_region = has(page, kProtected) && !has(page, kSoft);
  const bool should_move =
      has(page, kSealed) && !holds_sinks(page) && !has(page, kPinned) && !protected_by_region;
  if (should_move == movable(page)) return;
  if (should_move) {
    set(page, kMovable);
    movable_tokens_ += tokens_[page];
  } else {
    clear(page, kMovable);
    movable_tokens_ -= tokens_[page];
  }
}

void PageBook::pin(PageIndex page) {
  check_sealed(page);
  set(page, kPinned);
  reclassify(page);
}

void PageBook::unpin(PageIndex page) {
  check_sealed(page);
  clear(page, kPinned);
  reclassify(page);
}

void PageBook::soften(PageIndex page) {
  check_sealed(page);
  set(page, kSoft);
  reclassify(page);
}

void PageBook::harden(PageIndex page) {
  check_sealed(page);
  clear(page, kSoft);
  reclassify(page);
}

void PageBook::evict(PageIndex page) {
  check_sealed(page);
  MEMDECAY_CHECK(resident(page));
  clear(page, kResident);
}

void PageBook::restore(PageIndex page) {
  check_sealed(page);
  MEMDECAY_CHECK(!resident(page));
  set(page, kResident);
}

void PageBook::forget(PageIndex page) {
  flags_[page] = static_cast<uint8_t>(flags_[page] & kMovable);
  reclassify(page);
  mixed_.erase(page);
  adjusted_.erase(page);
}

void PageBook::truncate(PageIndex first_removed) {
  for (PageIndex page = first_removed; page < end(); ++page) forget(page);
  PageIndex last = std::min(first_removed, end());
  while (last > 0 && flags_[last - 1] == 0) --last;
  flags_.resize(last);
  tokens_.resize(last);
  single_.resize(last);
}

void PageBook::hint(PageIndex page, double relevance) {
  check_sealed(page);
  MEMDECAY_CHECK(relevance >= 0.0 && relevance <= 1.0);
  adjusted_[page].half_life_scale = fixed_exp2(4.0 * relevance - 2.0);
}

void PageBook::supersede(PageIndex page) {
  check_sealed(page);
  Adjustment& adjustment = adjusted_[page];
  if (adjustment.superseded) return;
  adjustment.superseded = true;
  adjustment.b_scale *= kSupersedeScale;
}

void PageBook::cut(PageIndex page) {
  check_sealed(page);
  Adjustment& adjustment = adjusted_[page];
  if (adjustment.cut) return;
  adjustment.cut = true;
  adjustment.b_scale *= kCutScale;
}

void PageBook::end_group(PageIndex page) {
  check_sealed(page);
  set(page, kEnded);
}

bool PageBook::held(PageIndex page) const {
  if (has(page, kEnded)) return false;
  const absl::Span<const RegionRun> all = runs(page);
  return std::any_of(all.begin(), all.end(), [this](const RegionRun& run) {
    return regions_[run.region].held == Held::kUntilEnded;
  });
}

const Spread& PageBook::spread(const Observation& observation) {
  spread_.per_token.clear();
  fit(spread_.per_token, end());
  spread_.listed.clear();
  named_.clear();
  fit(named_, end());
  for (const PageMass& mass : observation.masses) {
    if (!sealed(mass.page) || !resident(mass.page)) continue;
    spread_.per_token[mass.page] += mass.mass;
    named_[mass.page] = 1;
  }
  uint64_t unlisted_tokens = 0;
  uint64_t sink_count = 0;
  spread_.tokens = 0;
  spread_.pages = 0;
  for (PageIndex page = 0; page < end(); ++page) {
    if (!resident(page)) continue;
    set(page, kObserved);
    spread_.tokens += tokens_[page];
    spread_.pages += 1;
    sink_count += sink_tokens(page);
    if (named_[page] == 0) unlisted_tokens += other_tokens(page);
  }
  const double per_unlisted =
      unlisted_tokens == 0 ? 0.0 : observation.rest / static_cast<double>(unlisted_tokens);
  spread_.per_sink_token =
      sink_count == 0 ? 0.0 : observation.sink / static_cast<double>(sink_count);
  for (PageIndex page = 0; page < end(); ++page) {
    if (!resident(page)) continue;
    const uint32_t others = other_tokens(page);
    if (named_[page] == 0) {
      if (others > 0) spread_.per_token[page] = per_unlisted;
    } else {
      spread_.listed.push_back(page);
      spread_.per_token[page] =
          others == 0 ? 0.0 : spread_.per_token[page] / static_cast<double>(others);
    }
  }
  return spread_;
}

Protection PageBook::protection(PageIndex page) const {
  check_sealed(page);
  if (holds_sinks(page)) return Protection::kSink;
  if (has(page, kProtected) && !has(page, kSoft)) return Protection::kRegion;
  if (has(page, kPinned)) return Protection::kPin;
  if (end() - page <= recent_) return Protection::kRecent;
  return Protection::kNone;
}

uint32_t PageBook::sink_tokens(PageIndex page) const {
  if (!holds_sinks(page)) return 0;
  return std::min<uint32_t>(tokens_[page], sinks_ - page * page_tokens_);
}

uint64_t PageBook::last_position(PageIndex page) const {
  return uint64_t{page} * page_tokens_ + tokens_[page] - 1;
}

absl::Span<const RegionRun> PageBook::runs(PageIndex page) const {
  const auto found = mixed_.find(page);
  if (found != mixed_.end()) return found->second;
  return absl::MakeConstSpan(&single_[page], 1);
}

Adjustment PageBook::adjustment(PageIndex page) const {
  const auto found = adjusted_.find(page);
  return found == adjusted_.end() ? Adjustment{} : found->second;
}

PageParameters PageBook::parameters(PageIndex page) const {
  const Adjustment adjustment_of_page = adjustment(page);
  PageParameters result{.b_scale = adjustment_of_page.b_scale};
  for (const RegionRun& run : runs(page)) {
    const RegionParameters& region = regions_[run.region];
    if (region.b > result.b || (region.b == result.b && run.region < result.lead)) {
      result.b = region.b;
      result.lead = run.region;
    }
  }
  result.clock = regions_[result.lead].clock;
  double doubling = std::numeric_limits<double>::infinity();
  for (const RegionRun& run : runs(page)) {
    const RegionParameters& region = regions_[run.region];
    if (region.clock != result.clock) continue;
    result.half_life = std::max(result.half_life, region.half_life);
    doubling = std::min(doubling, region.doubling);
  }
  result.half_life *= adjustment_of_page.half_life_scale;
  if (held(page)) return result;
  const bool grows = doubling < std::numeric_limits<double>::infinity();
  result.rate = grows ? -1.0 / doubling : 1.0 / result.half_life;
  result.turn_decay = regions_[result.lead].turn_decay;
  return result;
}

size_t PageBook::bytes() const {
  size_t total = sizeof(PageBook) + bytes_of(first_half_lives_);
  total += flags_.capacity() + tokens_.capacity() * sizeof(uint16_t);
  total += single_.capacity() * sizeof(RegionRun) + named_.capacity();
  total += spread_.per_token.capacity() * sizeof(double);
  total += spread_.listed.capacity() * sizeof(PageIndex);
  total += mixed_.capacity() * (sizeof(std::pair<PageIndex, std::vector<RegionRun>>) + 1);
  for (const auto& [page, list] : mixed_) total += list.capacity() * sizeof(RegionRun);
  total += adjusted_.capacity() * (sizeof(std::pair<PageIndex, Adjustment>) + 1);
  return total;
}

}  // namespace memdecay::policy
