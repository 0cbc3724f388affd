// What a session's pages are worth: the one interface of all policies.
//
// A Policy belongs to one session. The ledger tells it what happened, in the order it happened, and
// asks for scores and victims. It decides nothing else: leases, fences, budgets and modes are the
// ledger's, which passes them in as `eligible`.
//
// Policy keeps the facts every form needs (runs, residency, protection, grace, clock) in a PageBook
// and the numbers in a Scorer (scorer.h; one file per form), and caches the lowest pages until
// something that can change their order happens.
//
// Thread: none of its own; the owner's. Pure: no clock, chance, file. Same history, same decision,
// on every x86-64 machine and with both compilers.
// Invariants: no clock runs back; a score is finite; victims ascend by (score, tref, page), unless
// a safety valve is asked for (Stage). Errors: wrong options are refused by make_policy; everything
// else the ledger has checked before (a broken precondition is a bug and stops the process). Not
// here: which session gives first; shared pages (the ledger takes the maximum over sessions); what
// the lower tiers keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/policy/options.h"
#include "proto/contract/ids.h"

namespace memdecay::policy {

class Lowest;
struct Block;
class PageBook;
class Scorer;

// Tokens of one region inside a page, in position order; a page's runs sum to its tokens.
struct RegionRun {
  RegionId region = 0;
  uint16_t tokens = 0;
};

struct PageMass {
  PageIndex page = 0;
  double mass = 0.0;
};

// Attention received in one observed step: sink + tail + all masses + rest = 1 (the ledger refuses
// anything else, NaN and negative numbers included).
struct Observation {
  Step step = 0;
  uint64_t query_position = 0;        // of the last observing query
  uint32_t queries = 1;               // how many were averaged; 0 = nothing was seen, ignored
  double sink = 0.0;                  // mass on the sink positions
  double tail = 0.0;                  // mass on tokens not sealed yet
  double rest = 0.0;                  // mass on all other resident sealed pages together
  absl::Span<const PageMass> masses;  // over a page's non-sink tokens; pages not resident: ignored
};

// Why a page is no victim while its session is active.
enum class Protection : uint8_t {
  kNone,
  kSink,    // holds a sink position
  kRegion,  // holds a token of a pinned region
  kPin,     // pinned explicitly; holds for idle sessions as well
  kRecent,  // among the last sealed pages
};

// kActive honours every protection; kIdle (parked, ended, orphaned) only explicit pins.
enum class Activity : uint8_t { kActive, kIdle };
enum class GroupEnd : uint8_t { kDecay, kCut };

// Which pages go first: those that score low; then, if the safety valve is there, the oldest of its
// regions; then what is left, by score.
enum class Stage : uint8_t { kLow, kOldest, kHigh };

struct Victim {
  PageIndex page = 0;
  double score = 0.0;
  Step tref = 0;          // of the token refreshed longest ago: the first tie-breaker
  bool in_grace = false;  // given only because nothing else could be
  Stage stage = Stage::kLow;
};

// One addend of a score, in the unit of the score (half-lives for the log-linear forms).
struct Term {
  std::string_view name;
  double value = 0.0;
};

class Policy {
 public:
  Policy(PolicyOptions options, std::unique_ptr<Scorer> scorer);
  ~Policy();
  Policy(Policy&&) noexcept;
  Policy& operator=(Policy&&) noexcept;

  // The same state from here on: for a fork. (A resumed session keeps its own object.)
  std::unique_ptr<Policy> clone() const;

  const PolicyOptions& options() const { return options_; }
  Step now() const;

  // -- What happened. Pages named below were sealed before and not truncated since.
  // The count of accepted generated tokens; a smaller one than before changes nothing.
  void on_step(Step step);
  // The session begins to wait for its user: a turn is over, and every group with it.
  void on_turn();
  // Wall time since the session was opened; less than before changes nothing.
  void on_seconds(double seconds);
  bool counts_seconds() const;
  // A half-life that was learnt, by the region's clock; held within [h/4, 4h] of the options' h.
  void set_half_life(RegionId region, double half_life);
  // The page is resident and its bytes are final. Pages may be sealed out of order.
  void on_seal(PageIndex page, absl::Span<const RegionRun> runs);
  // Moves the clock to observation.step first.
  void on_observe(const Observation& observation);
  // New regions for a sealed page, resident or not. Nothing else of it changes.
  void on_retag(PageIndex page, absl::Span<const RegionRun> runs);
  // Explicit pins. Calls do not nest: the ledger counts.
  void on_pin(PageIndex page);
  void on_unpin(PageIndex page);
  // A page of a pinned region that the pin budget does not carry: keeps b and h, loses protection.
  void on_soften(PageIndex page);
  void on_harden(PageIndex page);
  // The session no longer sees the page / sees it again. State is kept as it was.
  void on_evicted(PageIndex page);
  void on_restored(PageIndex page);
  // Pages first_removed and later are gone for good.
  void on_truncate(PageIndex first_removed);
  // A group of pages has ended: one lifetime for all from now on; kCut also lowers them at once.
  void on_end_group(PageIndex first, PageIndex last, GroupEnd end);
  // Relevance in [0, 1] scales the half-life by 2^(4 relevance - 2). The last hint counts.
  void on_hint(PageIndex page, double relevance);
  // What the page says was replaced: b is divided by 8, once.
  void on_supersede(PageIndex page);

  // -- What follows.
  // Of a sealed page, resident or not.
  double score(PageIndex page) const;
  Step tref(PageIndex page) const;
  Protection protection(PageIndex page) const;
  bool sealed(PageIndex page) const;
  uint32_t tokens(PageIndex page) const;
  bool resident(PageIndex page) const;
  // Not yet resident at one observation: no victim while others can be. Always false for forms
  // without grace.
  bool in_grace(PageIndex page) const;
  // The `count` lowest resident pages that are not protected and for which eligible(page) holds, in
  // the order in which they should go; pages in grace only after all others.
  std::vector<Victim> lowest(size_t count, Activity activity,
                             absl::FunctionRef<bool(PageIndex)> eligible) const;
  // The `count` lowest pages of several sessions together, as lowest() would give them for each
  // one: ties go by session, in the order of `sources`, then by page. Sessions that have not
  // changed since the last question answer from what they keep.
  struct Source {
    const Policy* policy = nullptr;
    Activity activity = Activity::kActive;
  };
  struct Pick {
    size_t source = 0;  // index
    Victim victim;
  };
  static std::vector<Pick> lowest_of(absl::Span<const Source> sources, size_t count,
                                     absl::FunctionRef<bool(size_t source, PageIndex)> eligible);
  // The addends of score(page), summing to it within rounding.
  std::vector<Term> explain(PageIndex page) const;

  // Observations that carried too little mass on movable pages to say anything.
  uint64_t skipped_observations() const;
  // Memory held, in bytes; at most kBytesPerPage a sealed page plus a constant.
  size_t bytes() const;
  static constexpr size_t kBytesPerPage = 200;

 private:
  struct Cache;

  double block_scores(PageIndex first, absl::Span<double> out) const;
  Stage stage_of(PageIndex page, double score) const;
  void clock_moved();
  void end_group(PageIndex page, GroupEnd end);
  Block outlook(PageIndex first, PageIndex count, double low) const;
  void renew_blocks();
  void scan(Lowest& lowest, Activity activity, absl::FunctionRef<bool(PageIndex)> eligible) const;
  void fill_cache(size_t count, Activity activity, const std::optional<Victim>& bound) const;
  bool cached(Activity activity) const;

  PolicyOptions options_;
  std::unique_ptr<PageBook> book_;
  std::unique_ptr<Scorer> scorer_;
  std::unique_ptr<Cache> cache_;
  double valve_score_;                  // infinity: no valve
  std::vector<uint8_t> valve_regions_;  // by region
  bool counts_turns_ = false;
  bool counts_seconds_ = false;
  bool holds_groups_ = false;
};

// Names that make_policy knows, in alphabetical order: each form, then its twin with pinned
// regions.
std::vector<std::string_view> policy_names();

// With what is left to the policy written out. Options with an unknown name stay as they are.
PolicyOptions completed(PolicyOptions options);
// Leaves out what options.name and its refresh rule cannot honour. `before` is the name that the
// options were written for: with another name its choice of pinned regions is left out too.
void leave_foreign(PolicyOptions& options, std::string_view before);

// invalid_argument names the option and what would be accepted.
absl::StatusOr<std::unique_ptr<Policy>> make_policy(PolicyOptions options);

}  // namespace memdecay::policy
