// The facts about a session's pages that every form needs: what regions they hold, whether they are
// resident, what protects them, how an observation's mass falls on them.
// Struct of arrays by page index; what only few pages have (mixed regions, hints) lies in maps.
// Thread: the owning Policy's. Invariant: movable_tokens() is the sum over sealed movable pages.
// Not here: scores (scorer.h), the order of victims (policy.cc).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "daemon/policy/options.h"
#include "daemon/policy/policy.h"

namespace memdecay::policy {

// What hints, supersedes and cut groups have done to a page.
struct Adjustment {
  double half_life_scale = 1.0;
  double b_scale = 1.0;
  bool superseded = false;
  bool cut = false;
};

// b and half-life of a page. A mixed page takes the largest b, and the clock of the region that b
// is from; of the regions with this clock it takes the longest half-life.
struct PageParameters {
  double b = 0.0;
  double b_scale = 1.0;     // by Adjustment
  double half_life = 0.0;   // scaled by Adjustment
  double rate = 0.0;        // 1/half_life; below 0 if the page grows; 0 while it is held
  double turn_decay = 0.0;  // 0 while it is held
  Clock clock = Clock::kTokens;
  RegionId lead = 0;  // the region that b is from; of equal ones the smaller
};

// An observation spread over the resident pages.
struct Spread {
  std::vector<double> per_token;  // by page: mass of each non-sink token; 0 where not resident
  std::vector<PageIndex> listed;  // resident pages that the observation named; ascending, once each
  double per_sink_token = 0.0;
  uint64_t tokens = 0;  // of the resident pages, sinks included
  uint32_t pages = 0;   // resident
};

class PageBook {
 public:
  explicit PageBook(const PolicyOptions& options);

  void advance(Step step);
  void end_turn() { time_[static_cast<size_t>(Clock::kTurns)] += 1.0; }
  void advance_seconds(double seconds);
  // The half-life from now on, within a factor of kMostAdaption of what the options said.
  void set_half_life(RegionId region, double half_life);
  void seal(PageIndex page, absl::Span<const RegionRun> runs);
  void retag(PageIndex page, absl::Span<const RegionRun> runs);
  void pin(PageIndex page);
  void unpin(PageIndex page);
  void soften(PageIndex page);
  void harden(PageIndex page);
  void evict(PageIndex page);
  void restore(PageIndex page);
  void truncate(PageIndex first_removed);
  void hint(PageIndex page, double relevance);
  void supersede(PageIndex page);
  void cut(PageIndex page);
  void end_group(PageIndex page);
  // Marks every resident page as observed. The result lives until the next call.
  const Spread& spread(const Observation& observation);

  Step now() const { return now_; }
  double time(Clock clock) const { return time_[static_cast<size_t>(clock)]; }
  // One past the last sealed page.
  PageIndex end() const { return static_cast<PageIndex>(flags_.size()); }
  bool sealed(PageIndex page) const { return page < end() && has(page, kSealed); }
  bool resident(PageIndex page) const { return has(page, kResident); }
  bool pinned(PageIndex page) const { return has(page, kPinned); }
  bool observed(PageIndex page) const { return has(page, kObserved); }
  bool group_ended(PageIndex page) const { return has(page, kEnded); }
  // Has a region that waits for the end of its group, which has not come.
  bool held(PageIndex page) const;
  bool holds_sinks(PageIndex page) const { return page < sink_pages_; }
  // Neither sink nor pinned: what lift is normalised over. Residency does not matter.
  bool movable(PageIndex page) const { return has(page, kMovable); }
  Protection protection(PageIndex page) const;
  // protection(page) != kNone, for pages known to be sealed.
  bool is_protected(PageIndex page) const {
    return !has(page, kMovable) || end() - page <= recent_;
  }

  uint32_t tokens(PageIndex page) const { return tokens_[page]; }
  uint32_t sink_tokens(PageIndex page) const;
  uint32_t other_tokens(PageIndex page) const { return tokens_[page] - sink_tokens(page); }
  uint64_t last_position(PageIndex page) const;
  // Attention that a token of the page received, on average; sinks count like others.
  double attention(PageIndex page, const Spread& spread) const {
    if (!holds_sinks(page)) return spread.per_token[page];
    const double sum = static_cast<double>(sink_tokens(page)) * spread.per_sink_token +
                       static_cast<double>(other_tokens(page)) * spread.per_token[page];
    return sum / static_cast<double>(tokens(page));
  }
  uint64_t movable_tokens() const { return movable_tokens_; }
  uint32_t sinks() const { return sinks_; }
  PageIndex sink_pages() const { return sink_pages_; }

  // In position order on pages with sinks, else by region, each region once.
  absl::Span<const RegionRun> runs(PageIndex page) const;
  const std::vector<RegionParameters>& regions() const { return regions_; }
  Adjustment adjustment(PageIndex page) const;
  PageParameters parameters(PageIndex page) const;

  size_t bytes() const;

 private:
  enum Flag : uint8_t {
    kSealed = 1,
    kResident = 2,
    kObserved = 4,    // was resident at an observation
    kPinned = 8,      // explicitly
    kProtected = 16,  // holds a token of a pinned region
    kSoft = 32,       // but the pin budget does not carry it
    kMovable = 64,
    kEnded = 128,  // its group
  };

  bool has(PageIndex page, Flag flag) const { return (flags_[page] & flag) != 0; }
  void set(PageIndex page, Flag flag) { flags_[page] = static_cast<uint8_t>(flags_[page] | flag); }
  void clear(PageIndex page, Flag flag) {
    flags_[page] = static_cast<uint8_t>(flags_[page] & ~flag);
  }
  void check_sealed(PageIndex page) const;
  void store_runs(PageIndex page, absl::Span<const RegionRun> runs);
  // Brings kMovable and the count in line with the other flags.
  void reclassify(PageIndex page);
  void forget(PageIndex page);

  std::vector<RegionParameters> regions_;
  std::vector<double> first_half_lives_;  // by region: what the options said
  std::vector<uint8_t> region_pinned_;    // by region
  uint32_t page_tokens_;
  uint32_t sinks_;
  PageIndex recent_;
  PageIndex sink_pages_;

  Step now_ = 0;
  std::array<double, kClocks> time_{};  // by Clock; [kTokens] is now_
  uint64_t movable_tokens_ = 0;
  std::vector<uint8_t> flags_;
  std::vector<uint16_t> tokens_;
  std::vector<RegionRun> single_;  // the run of a page that has one region
  absl::flat_hash_map<PageIndex, std::vector<RegionRun>> mixed_;
  absl::flat_hash_map<PageIndex, Adjustment> adjusted_;
  Spread spread_;
  std::vector<uint8_t> named_;  // scratch of spread()
};

}  // namespace memdecay::policy
