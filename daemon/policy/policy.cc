// Forwards events to the book and the form, and orders victims.
//
// A question for victims goes block by block: a block whose bound is above what is wanted is passed
// over; of the others the form writes the scores, pages fall out by comparing one number, and only
// the few that are left are looked at. An observation, which changes every score, renews all
// bounds; other events touch the block of their page. The lowest victims are kept until an event
// that can change the order, so that questions in between cost what they return. `eligible` is not
// part of what is kept: it may change at any time.
//
// Thread: the owner's (the cache is filled by const calls). Not here: several sessions at once
// (lowest_of.cc).
#include "daemon/policy/policy.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "daemon/policy/book.h"
#include "daemon/policy/cache.h"
#include "daemon/policy/lowest.h"
#include "daemon/policy/scorer.h"
#include "proto/contract/check.h"

namespace memdecay::policy {

Policy::Policy(PolicyOptions options, std::unique_ptr<Scorer> scorer)
    : options_(std::move(options)),
      book_(std::make_unique<PageBook>(options_)),
      scorer_(std::move(scorer)),
      cache_(std::make_unique<Cache>()),
      valve_score_(options_.valve_score.value_or(std::numeric_limits<double>::infinity())),
      valve_regions_(options_.regions.size(), 0) {
  for (const RegionId region : options_.valve_regions.value_or(std::vector<RegionId>{})) {
    valve_regions_[region] = 1;
  }
  for (const RegionParameters& region : options_.regions) {
    const bool held = region.held == Held::kUntilEnded;
    counts_turns_ |= region.clock == Clock::kTurns || region.turn_decay > 0.0;
    counts_seconds_ |= region.clock == Clock::kSeconds;
    holds_groups_ |= held;
  }
}
Policy::~Policy() = default;
Policy::Policy(Policy&&) noexcept = default;
Policy& Policy::operator=(Policy&&) noexcept = default;

std::unique_ptr<Policy> Policy::clone() const {
  auto copy = std::make_unique<Policy>(options_, scorer_->clone());
  *copy->book_ = *book_;
  return copy;
}

Step Policy::now() const { return book_->now(); }

void Policy::on_step(Step step) {
  if (step <= book_->now()) return;
  book_->advance(step);
  clock_moved();
}

void Policy::clock_moved() {
  if (scorer_->moves() == Moves::kWithTheClock) cache_->valid = false;
  scorer_->on_clock(*book_);
}

void Policy::on_turn() {
  book_->end_turn();
  if (counts_turns_) clock_moved();
  if (!holds_groups_) return;
  cache_->valid = false;
  for (PageIndex page = 0; page < book_->end(); ++page) {
    if (book_->sealed(page) && book_->held(page)) end_group(page, GroupEnd::kDecay);
  }
}

void Policy::on_seconds(double seconds) {
  if (!counts_seconds_ || seconds <= book_->time(Clock::kSeconds)) return;
  book_->advance_seconds(seconds);
  clock_moved();
}

bool Policy::counts_seconds() const { return counts_seconds_; }

void Policy::set_half_life(RegionId region, double half_life) {
  book_->set_half_life(region, half_life);
  cache_->valid = false;
  cache_->blocks.clear();
  scorer_->on_regions(*book_);
}

void Policy::on_seal(PageIndex page, absl::Span<const RegionRun> runs) {
  cache_->touch(page);
  book_->seal(page, runs);
  scorer_->on_seal(*book_, page);
}

void Policy::on_observe(const Observation& observation) {
  on_step(observation.step);
  if (observation.queries == 0) return;
  scorer_->on_observe(*book_, observation, book_->spread(observation));
  if (scorer_->moves() == Moves::kNever) return;
  cache_->valid = false;
  renew_blocks();
}

void Policy::on_retag(PageIndex page, absl::Span<const RegionRun> runs) {
  cache_->touch(page);
  book_->retag(page, runs);
  scorer_->on_changed(*book_, page);
}

void Policy::on_pin(PageIndex page) {
  cache_->touch(page);
  book_->pin(page);
}

void Policy::on_unpin(PageIndex page) {
  cache_->touch(page);
  book_->unpin(page);
}

void Policy::on_soften(PageIndex page) {
  cache_->touch(page);
  book_->soften(page);
}

void Policy::on_harden(PageIndex page) {
  cache_->touch(page);
  book_->harden(page);
}

void Policy::on_evicted(PageIndex page) {
  cache_->touch(page);
  scorer_->on_evicted(*book_, page);
  book_->evict(page);
}

void Policy::on_restored(PageIndex page) {
  cache_->touch(page);
  book_->restore(page);
  scorer_->on_restored(*book_, page);
}

void Policy::on_truncate(PageIndex first_removed) {
  cache_->valid = false;
  for (PageIndex page = first_removed; page < book_->end(); ++page) cache_->touch(page);
  book_->truncate(first_removed);
  scorer_->on_truncate(*book_);
}

void Policy::on_end_group(PageIndex first, PageIndex last, GroupEnd end) {
  cache_->valid = false;
  for (PageIndex page = first; page <= last && page < book_->end(); ++page) {
    if (book_->sealed(page)) end_group(page, end);
  }
}

void Policy::end_group(PageIndex page, GroupEnd end) {
  cache_->touch(page);
  book_->end_group(page);
  if (end == GroupEnd::kCut) book_->cut(page);
  scorer_->on_changed(*book_, page);
  scorer_->on_group_ended(*book_, page);
}

void Policy::on_hint(PageIndex page, double relevance) {
  cache_->touch(page);
  book_->hint(page, relevance);
  scorer_->on_changed(*book_, page);
}

void Policy::on_supersede(PageIndex page) {
  cache_->touch(page);
  book_->supersede(page);
  scorer_->on_changed(*book_, page);
}

double Policy::score(PageIndex page) const {
  MEMDECAY_CHECK(book_->sealed(page));
  const double score = scorer_->score(*book_, page);
  MEMDECAY_CHECK(score - score == 0.0);  // finite
  return score;
}

Step Policy::tref(PageIndex page) const {
  MEMDECAY_CHECK(book_->sealed(page));
  return scorer_->tref(*book_, page);
}

Protection Policy::protection(PageIndex page) const { return book_->protection(page); }

bool Policy::sealed(PageIndex page) const { return book_->sealed(page); }

uint32_t Policy::tokens(PageIndex page) const {
  MEMDECAY_CHECK(book_->sealed(page));
  return book_->tokens(page);
}

bool Policy::resident(PageIndex page) const { return book_->sealed(page) && book_->resident(page); }

bool Policy::in_grace(PageIndex page) const {
  MEMDECAY_CHECK(book_->sealed(page));
  return options_.grace && scorer_->grace() == Grace::kUntilObserved && !book_->observed(page);
}

// Scores of one block. Returns the lowest of a resident page; infinity if there is none.
double Policy::block_scores(PageIndex first, absl::Span<double> out) const {
  scorer_->scores(*book_, first, out);
  double low = std::numeric_limits<double>::infinity();
  double difference = 0.0;
  for (size_t i = 0; i < out.size(); ++i) {
    difference += out[i] - out[i];
    if (out[i] < low && book_->resident(first + static_cast<PageIndex>(i))) low = out[i];
  }
  MEMDECAY_CHECK(difference == 0.0);  // all finite
  return low;
}

Block Policy::outlook(PageIndex first, PageIndex count, double low) const {
  const double none = std::numeric_limits<double>::infinity();
  if (low == none) return {.outlook = {.low = none, .floor = none}, .step = book_->now()};
  return {.outlook = scorer_->outlook(*book_, first, count, low), .step = book_->now()};
}

void Policy::renew_blocks() {
  cache_->cover(book_->end());
  std::array<double, kBlockPages> scores;
  for (PageIndex first = 0; first < book_->end(); first += kBlockPages) {
    const PageIndex size = std::min(kBlockPages, book_->end() - first);
    const double low = block_scores(first, absl::MakeSpan(scores.data(), size));
    cache_->blocks[first / kBlockPages] = outlook(first, size, low);
  }
}

Stage Policy::stage_of(PageIndex page, double score) const {
  if (score < valve_score_) return Stage::kLow;
  const absl::Span<const RegionRun> runs = book_->runs(page);
  const bool gives = std::all_of(runs.begin(), runs.end(), [this](const RegionRun& run) {
    return valve_regions_[run.region] != 0;
  });
  return gives ? Stage::kOldest : Stage::kHigh;
}

void Policy::scan(Lowest& lowest, Activity activity,
                  absl::FunctionRef<bool(PageIndex)> eligible) const {
  const PageBook& book = *book_;
  const bool has_grace = options_.grace && scorer_->grace() == Grace::kUntilObserved;
  const auto consider = [&](PageIndex page, double score) {
    if (!book.resident(page)) return;
    if (activity == Activity::kActive ? book.is_protected(page) : book.pinned(page)) return;
    const Victim victim{.page = page,
                        .score = score,
                        .tref = scorer_->tref(book, page),
                        .in_grace = has_grace && !book.observed(page),
                        .stage = stage_of(page, score)};
    if (lowest.passes(victim) && eligible(page)) lowest.add(victim);
  };
  cache_->cover(book.end());
  std::array<double, kBlockPages> scores;
  for (PageIndex first = 0; first < book.end(); first += kBlockPages) {
    Block& block = cache_->blocks[first / kBlockPages];
    if (lowest.none_passes(block.bound(book.now()), block.outlook.tref, first)) continue;
    const PageIndex size = std::min(kBlockPages, book.end() - first);
    const double low = block_scores(first, absl::MakeSpan(scores.data(), size));
    block = outlook(first, size, low);
    for (PageIndex i = 0; i < size; ++i) {
      if (scores[i] <= lowest.score_limit()) consider(first + i, scores[i]);
    }
  }
}

bool Policy::cached(Activity activity) const {
  return cache_->valid && cache_->activity == activity;
}

// Keeps the `count` lowest that go before `bound`, eligible or not.
void Policy::fill_cache(size_t count, Activity activity, const std::optional<Victim>& bound) const {
  Lowest lowest(count, bound);
  scan(lowest, activity, [](PageIndex) { return true; });
  const std::vector<Victim> victims = lowest.take();
  cache_->victims.assign(victims.begin(), victims.end());
  cache_->bound = lowest.bound();
  cache_->activity = activity;
  cache_->valid = true;
}

std::vector<Victim> Policy::lowest(size_t count, Activity activity,
                                   absl::FunctionRef<bool(PageIndex)> eligible) const {
  const Cache& cache = *cache_;
  if (!cached(activity) || (!cache.complete() && cache.victims.size() < count)) {
    fill_cache(std::max(count, kCachedVictims), activity, std::nullopt);
  }
  std::vector<Victim> victims;
  for (const Victim& victim : cache.victims) {
    if (victims.size() == count) break;
    if (eligible(victim.page)) victims.push_back(victim);
  }
  if (victims.size() == count || cache.complete()) return victims;
  Lowest lowest(count, std::nullopt);  // too many of those kept are held by somebody
  scan(lowest, activity, eligible);
  return lowest.take();
}

std::vector<Term> Policy::explain(PageIndex page) const {
  MEMDECAY_CHECK(book_->sealed(page));
  return scorer_->explain(*book_, page);
}

uint64_t Policy::skipped_observations() const { return scorer_->skipped_observations(); }

size_t Policy::bytes() const {
  return sizeof(Policy) + sizeof(Cache) + book_->bytes() + scorer_->bytes() +
         bytes_of(cache_->victims) + bytes_of(cache_->blocks);
}

}  // namespace memdecay::policy
