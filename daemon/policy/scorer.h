// The port behind which a policy's formula lives: one final implementation a file.
//
// The owning Policy calls the hooks after it has brought the book up to date; a hook updates the
// numbers of the pages concerned at once (eager), so that score() only reads. A hook that a form
// has no use for stays empty. Thread: the owning Policy's. Invariant: scores()[p] and score(p) have
// the same bits. Not here: protection, grace, the order of victims, argument checks (policy.cc).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "daemon/policy/book.h"
#include "daemon/policy/policy.h"

namespace memdecay::policy {

// Whether a page that was never resident at an observation is spared while others can go.
enum class Grace : uint8_t { kNone, kUntilObserved };

// What changes scores of pages that no event names: it decides how long an order of victims holds.
enum class Moves : uint8_t {
  kNever,         // the order is invariant
  kWhenObserved,  // observations
  kWithTheClock,  // observations and steps
};

// What a block's lowest score is worth as time passes: no less than max(low - fall * steps, floor),
// and no tref is below `tref`.
struct Outlook {
  // More than the rounding of any form, relatively.
  static constexpr double kMargin = 1e-9;
  static double below(double score) { return score - kMargin * (1.0 + std::abs(score)); }

  double low = 0.0;
  double fall = 0.0;  // a step
  double floor = 0.0;
  Step tref = 0;
};

class Scorer {
 public:
  virtual ~Scorer() = default;
  virtual std::unique_ptr<Scorer> clone() const = 0;
  virtual Grace grace() const = 0;
  virtual Moves moves() const = 0;

  // A new page, resident from now.
  virtual void on_seal(const PageBook& book, PageIndex page) = 0;
  // A clock has moved.
  virtual void on_clock(const PageBook&) {}
  // Half-lives of regions are new.
  virtual void on_regions(const PageBook& book) {
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (book.sealed(page)) on_changed(book, page);
    }
  }
  // `spread` is the observation laid over the resident pages.
  virtual void on_observe(const PageBook&, const Observation&, const Spread&) {}
  // Regions, hints or factors of the page are new: derive its parameters again.
  virtual void on_changed(const PageBook&, PageIndex) {}
  virtual void on_evicted(const PageBook&, PageIndex) {}
  virtual void on_restored(const PageBook&, PageIndex) {}
  // Pages from book.end() on are gone.
  virtual void on_truncate(const PageBook& book) = 0;
  // The page starts to decay now.
  virtual void on_group_ended(const PageBook&, PageIndex) {}

  virtual double score(const PageBook& book, PageIndex page) const = 0;
  // Of the pages from `first` on, as many as `out` holds, all below book.end(). What stands at
  // pages that are not resident is finite and does not matter otherwise.
  virtual void scores(const PageBook& book, PageIndex first, absl::Span<double> out) const = 0;
  // Of `count` pages whose lowest score is `low` now, until an event changes one of them. Margins
  // for rounding are included.
  virtual Outlook outlook(const PageBook&, PageIndex /*first*/, PageIndex /*count*/,
                          double low) const {
    return {.low = low, .fall = 0.0, .floor = low};
  }
  virtual Step tref(const PageBook& book, PageIndex page) const = 0;
  virtual std::vector<Term> explain(const PageBook& book, PageIndex page) const = 0;
  virtual uint64_t skipped_observations() const { return 0; }
  virtual size_t bytes() const = 0;
};

// One a form; PolicyOptions was validated. (registry.cc)
std::unique_ptr<Scorer> make_h2o();
std::unique_ptr<Scorer> make_lru();
std::unique_ptr<Scorer> make_memdecay(const PolicyOptions& options);
std::unique_ptr<Scorer> make_memdecay_n(const PolicyOptions& options);
std::unique_ptr<Scorer> make_memdecay_n0();
std::unique_ptr<Scorer> make_norm_sum();
std::unique_ptr<Scorer> make_random(const PolicyOptions& options);
std::unique_ptr<Scorer> make_snapkv(const PolicyOptions& options);
std::unique_ptr<Scorer> make_streaming();
std::unique_ptr<Scorer> make_tova();
std::unique_ptr<Scorer> make_truncation();

}  // namespace memdecay::policy
