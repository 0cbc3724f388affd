// Forwards events to the book and the form, and orders victims.
//
// A question for victims scans all pages once with a bounded heap. The lowest kCachedVictims are
// kept until an event or the clock changes something, so that questions between two steps cost what
// they return. `eligible` is not part of the cache: it may change at any time. Thread: the owner's
// (the cache is filled by const calls).
#include "daemon/policy/policy.h"

#include <algorithm>
#include <utility>

#include "daemon/policy/book.h"
#include "daemon/policy/scorer.h"
#include "proto/contract/check.h"

namespace memdecay::policy {
namespace {

constexpr size_t kCachedVictims = 64;

// The order in which pages go.
bool goes_before(const Victim& a, const Victim& b) {
  if (a.in_grace != b.in_grace) return b.in_grace;
  if (a.score != b.score) return a.score < b.score;
  if (a.tref != b.tref) return a.tref < b.tref;
  return a.page < b.page;
}

}  // namespace

struct Policy::Cache {
  bool valid = false;
  bool complete = false;  // holds every page that could be a victim
  Activity activity = Activity::kActive;
  std::vector<Victim> victims;  // ascending; the lowest, eligible or not
  std::vector<double> scores;   // scratch of the scan
};

Policy::Policy(PolicyOptions options, std::unique_ptr<Scorer> scorer)
    : options_(std::move(options)),
      book_(std::make_unique<PageBook>(options_)),
      scorer_(std::move(scorer)),
      cache_(std::make_unique<Cache>()) {}
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
  cache_->valid = false;
  book_->advance(step);
  scorer_->on_step(*book_);
}

void Policy::on_seal(PageIndex page, absl::Span<const RegionRun> runs) {
  cache_->valid = false;
  book_->seal(page, runs);
  scorer_->on_seal(*book_, page);
}

void Policy::on_observe(const Observation& observation) {
  on_step(observation.step);
  if (observation.queries == 0) return;
  cache_->valid = false;
  scorer_->on_observe(*book_, observation, book_->spread(observation));
}

void Policy::on_retag(PageIndex page, absl::Span<const RegionRun> runs) {
  cache_->valid = false;
  book_->retag(page, runs);
  scorer_->on_changed(*book_, page);
}

void Policy::on_pin(PageIndex page) {
  cache_->valid = false;
  book_->pin(page);
}

void Policy::on_unpin(PageIndex page) {
  cache_->valid = false;
  book_->unpin(page);
}

void Policy::on_soften(PageIndex page) {
  cache_->valid = false;
  book_->soften(page);
}

void Policy::on_harden(PageIndex page) {
  cache_->valid = false;
  book_->harden(page);
}

void Policy::on_evicted(PageIndex page) {
  cache_->valid = false;
  scorer_->on_evicted(*book_, page);
  book_->evict(page);
}

void Policy::on_restored(PageIndex page) {
  cache_->valid = false;
  book_->restore(page);
  scorer_->on_restored(*book_, page);
}

void Policy::on_truncate(PageIndex first_removed) {
  cache_->valid = false;
  book_->truncate(first_removed);
  scorer_->on_truncate(*book_);
}

void Policy::on_end_group(PageIndex first, PageIndex last, GroupEnd end) {
  cache_->valid = false;
  for (PageIndex page = first; page <= last && page < book_->end(); ++page) {
    if (!book_->sealed(page)) continue;
    if (end == GroupEnd::kCut) book_->cut(page);
    scorer_->on_changed(*book_, page);
    scorer_->on_group_ended(*book_, page);
  }
}

void Policy::on_hint(PageIndex page, double relevance) {
  cache_->valid = false;
  book_->hint(page, relevance);
  scorer_->on_changed(*book_, page);
}

void Policy::on_supersede(PageIndex page) {
  cache_->valid = false;
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

// One pass over all pages; scores in bulk, everything else only for pages that may enter the heap.
std::vector<Victim> Policy::scan(size_t count, Activity activity,
                                 absl::FunctionRef<bool(PageIndex)> eligible) const {
  std::vector<Victim> heap;  // the last to go on top
  if (count == 0) return heap;
  std::vector<double>& scores = cache_->scores;
  scores.resize(book_->end());
  scorer_->scores(*book_, absl::MakeSpan(scores));
  const bool has_grace = options_.grace && scorer_->grace() == Grace::kUntilObserved;
  for (PageIndex page = 0; page < book_->end(); ++page) {
    if (!resident(page)) continue;
    Victim victim{
        .page = page, .score = scores[page], .in_grace = has_grace && !book_->observed(page)};
    MEMDECAY_CHECK(victim.score - victim.score == 0.0);  // finite
    const bool full = heap.size() == count;
    if (full && victim.in_grace >= heap.front().in_grace && victim.score > heap.front().score) {
      continue;
    }
    if (activity == Activity::kActive ? book_->protection(page) != Protection::kNone
                                      : book_->pinned(page)) {
      continue;
    }
    victim.tref = scorer_->tref(*book_, page);
    if ((full && !goes_before(victim, heap.front())) || !eligible(page)) continue;
    if (full) {
      std::pop_heap(heap.begin(), heap.end(), goes_before);
      heap.pop_back();
    }
    heap.push_back(victim);
    std::push_heap(heap.begin(), heap.end(), goes_before);
  }
  std::sort_heap(heap.begin(), heap.end(), goes_before);
  return heap;
}

std::vector<Victim> Policy::lowest(size_t count, Activity activity,
                                   absl::FunctionRef<bool(PageIndex)> eligible) const {
  Cache& cache = *cache_;
  if (!cache.valid || cache.activity != activity ||
      (!cache.complete && cache.victims.size() < count)) {
    const size_t wanted = std::max(count, kCachedVictims);
    cache.victims = scan(wanted, activity, [](PageIndex) { return true; });
    cache.complete = cache.victims.size() < wanted;
    cache.activity = activity;
    cache.valid = true;
  }
  std::vector<Victim> victims;
  for (const Victim& victim : cache.victims) {
    if (victims.size() == count) break;
    if (eligible(victim.page)) victims.push_back(victim);
  }
  if (victims.size() == count || cache.complete) return victims;
  return scan(count, activity, eligible);  // too many of the cached ones are held by somebody
}

std::vector<Term> Policy::explain(PageIndex page) const {
  MEMDECAY_CHECK(book_->sealed(page));
  return scorer_->explain(*book_, page);
}

uint64_t Policy::skipped_observations() const { return scorer_->skipped_observations(); }

size_t Policy::bytes() const {
  return sizeof(Policy) + sizeof(Cache) + book_->bytes() + scorer_->bytes() +
         cache_->victims.capacity() * sizeof(Victim) + cache_->scores.capacity() * sizeof(double);
}

}  // namespace memdecay::policy
