// How old pages are, for forms whose worth decays: since when, by each clock that the regions count
// in, and how many half-lives that makes. Where everything is counted in tokens (plain), nothing is
// kept: the form has its tref.
// Thread: the owning Policy's. Not here: what a half-life does to a score (memdecay.cc,
// memdecay_n.cc).
#pragma once

#include <algorithm>
#include <vector>

#include "daemon/policy/book.h"
#include "daemon/policy/columns.h"

namespace memdecay::policy {

// What decides how a page ages.
struct Pace {
  double rate = 0.0;  // half-lives a unit of the clock; below 0: grows
  double turn_decay = 0.0;
  Clock clock = Clock::kTokens;
};

class Ages {
 public:
  explicit Ages(const PolicyOptions& options)
      : boost_(options.boost.value_or(0.0)),
        neighbours_(static_cast<PageIndex>(options.boost_neighbours.value_or(1.0))) {
    for (const RegionParameters& region : options.regions) {
      turns_used_ |= region.clock == Clock::kTurns || region.turn_decay > 0.0;
      seconds_used_ |= region.clock == Clock::kSeconds;
      grows_ |= region.grows();
    }
  }

  bool plain() const { return !turns_used_ && !seconds_used_ && !grows_ && boost_ == 0.0; }
  bool boosts() const { return boost_ > 0.0; }

  void fit_to(size_t pages) {
    if (turns_used_) fit(turns_, pages);
    if (seconds_used_) fit(seconds_, pages);
    if (boosts()) fit(boosted_, pages);
  }

  enum class Why : uint8_t { kFresh, kReferenced };
  // The page's age is 0 now; its tref is the caller's.
  void reset(const PageBook& book, PageIndex page, Why why) {
    if (turns_used_) turns_[page] = book.time(Clock::kTurns);
    if (seconds_used_) seconds_[page] = book.time(Clock::kSeconds);
    if (boosts()) boosted_[page] = why == Why::kReferenced ? 1 : 0;
  }

  // Calls reset(page) for the page that was referenced and the neighbours that rise with it.
  template <typename Reset>
  void for_lifted(const PageBook& book, PageIndex page, Reset reset_page) const {
    const PageIndex reach = boosts() ? neighbours_ : 0;
    const PageIndex last = std::min(page + reach, book.end() - 1);
    for (PageIndex at = page - std::min(page, reach); at <= last; ++at) {
      if (book.sealed(at) && book.resident(at)) reset_page(at);
    }
  }

  double since(Clock clock, PageIndex page, double tref) const {
    switch (clock) {
      case Clock::kTokens:
        return tref;
      case Clock::kTurns:
        return turns_[page];
      case Clock::kSeconds:
        return seconds_[page];
    }
    return tref;
  }
  // Half-lives by which the page was lifted.
  double lift(PageIndex page) const { return boosts() && boosted_[page] != 0 ? boost_ : 0.0; }

  // Half-lives that the page has lost since; below 0 where it has gained.
  double lost(const PageBook& book, PageIndex page, double tref, const Pace& pace) const {
    const double age = book.time(pace.clock) - since(pace.clock, page, tref);
    double lost = std::max(age * pace.rate, -kMostGrowth);
    if (turns_used_) lost += (book.time(Clock::kTurns) - turns_[page]) * pace.turn_decay;
    return lost - (pace.rate > 0.0 ? lift(page) : 0.0);
  }

  size_t bytes() const { return bytes_of(turns_) + bytes_of(seconds_) + bytes_of(boosted_); }

 private:
  double boost_;
  PageIndex neighbours_;
  bool turns_used_ = false;
  bool seconds_used_ = false;
  bool grows_ = false;
  // By page, where they are used: when its age was 0; whether it was lifted then.
  std::vector<double> turns_;
  std::vector<double> seconds_;
  std::vector<uint8_t> boosted_;
};

}  // namespace memdecay::policy
