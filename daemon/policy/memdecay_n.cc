// `memdecay_n`: the product's default. Log-linear, in half-lives (bits); ours, not the paper's.
//
//   movable: not sink, not pinned. w = min(queries, 32); of a prefill's observation 1
//   A    = mass on resident movable pages; A < 2^-8: the observation is skipped and counted
//   phi  = sum over evicted movable pages of their share of movable mass, frozen at their eviction
//   u_p  = (M_p/n_p) N_mov (1 - phi)/A       lift: 1 on average over the session's movable tokens,
//                                            at any context length and after any eviction
//   x_p  = e(d_p)/Z                          lift to be expected at token distance d_p; Z makes its
//                                            mean over the movable tokens 1, as u's is
//   E   <- g E + w u_p,  X <- g X + w x_p    g = 2^(-dt/G), dt tokens since the last observation
//   K_p <- max(K_p 2^(-dt/G), u_p/x_p, 1)   peak: how much more than expected it was asked for
//   once,
//                                            by generated tokens
//   l_p  = log2 b - min((t - tref)/h, D) + beta clip(log2((E + k0)/(X + k0)), -2, 4)
//          + gamma clip(log2 K_p, 0, 6)
//   refresh: none, the peak is in its place; refresh_rule has others. lift: tref <- t if u_p >= 4
//            and the page was listed and is in the top tenth of the resident movable pages by
//            (u descending, page); expected: u/x in place of u; uniform: the paper's
//            M_p/n_p >= 2/N
//
// Why each piece: lift, since raw mass falls as 1/N; expected lift, since attention falls with age
// for every token; movable pages only, since a long pinned prompt would soak up the tenth; u >= 4,
// since a bare tenth always refreshes somebody; D, since unbounded decay turns into LRU; K, since
// a use is a burst of a few queries, which a mean over hundreds of them hides. The constants are
// those that kept most in tests/eval (decisions/0014). Choices where the formula leaves room:
//   - the distance is from the page's last token to the middle of the observing queries;
//   - a prefill's is an observation at which no token was generated since the last one: it says how
//     a text is written and read, not what is needed later, so it makes no peak;
//   - a page that was never observed has lift 1 (its even share) for phi;
//   - phi counts at most kMostAbsent, or a session that has lost everything would never see again;
//   - an evicted page keeps E and X; they do not fade while it is away;
//   - a boost lifts a referenced page by half-lives that it then loses like others (ages.h).
// Thread: the owning Policy's.
#include <algorithm>
#include <bit>
#include <limits>

#include "daemon/policy/ages.h"
#include "daemon/policy/columns.h"
#include "daemon/policy/math.h"
#include "daemon/policy/scorer.h"

namespace memdecay::policy {
namespace {

constexpr double kLeastMass = 1.0 / 256.0;
constexpr double kMostAbsent = 15.0 / 16.0;
constexpr uint32_t kHeaviestQueries = 32;
constexpr uint32_t kPrefillQueries = 1;
constexpr double kLowestEvidence = -2.0;  // log2(0.25)
constexpr double kHighestEvidence = 4.0;  // log2(16)
constexpr double kHighestPeak = 6.0;      // log2(64)

class MemdecayN final : public Scorer {
 public:
  explicit MemdecayN(const PolicyOptions& options)
      : beta_(options.beta.value_or(1.0)),
        gamma_(options.gamma.value_or(1.0)),
        decay_cap_(options.decay_cap.value_or(4.0)),
        memory_tokens_(options.memory_tokens.value_or(4096.0)),
        prior_(options.prior_evidence.value_or(2.0)),
        rule_(options.refresh_rule.value_or(RefreshRule::kNone)),
        refresh_lift_(options.refresh_lift.value_or(4.0)),
        refresh_fraction_(options.refresh_fraction.value_or(0.1)),
        tau_(options.tau_uniform.value_or(2.0)),
        ages_(options) {
    const ExpectedLift lift = options.expected_lift.value_or(ExpectedLift{});
    for (size_t region = 0; region < options.regions.size(); ++region) {
      expected_.push_back(lift.of(static_cast<RegionId>(region)));
    }
  }

  std::unique_ptr<Scorer> clone() const override { return std::make_unique<MemdecayN>(*this); }
  Grace grace() const override { return Grace::kUntilObserved; }
  Moves moves() const override { return Moves::kWithTheClock; }

  void on_seal(const PageBook& book, PageIndex page) override {
    resize(book);
    tref_[page] = static_cast<double>(book.now());
    evidence_[page] = 0.0;
    received_[page] = 0.0;
    expected_sum_[page] = 0.0;
    peak_[page] = {};
    lift_[page] = 1.0;
    absent_share_[page] = 0.0;
    ages_.reset(book, page, Ages::Why::kFresh);
    on_changed(book, page);
  }

  void on_observe(const PageBook& book, const Observation& observation,
                  const Spread& spread) override {
    const Totals totals = add_up(book, observation, spread);
    if (observation.queries == 0 || totals.mass < kLeastMass) {
      ++skipped_;
      return;
    }
    const double movable_tokens = static_cast<double>(book.movable_tokens());
    const double present = 1.0 - std::min(totals.absent_share, kMostAbsent);
    const double scale = movable_tokens * present / totals.mass;
    const double per_expected = movable_tokens / totals.expected;
    const Step gap = book.now() - last_observed_;
    const uint32_t most = gap == 0 ? kPrefillQueries : kHeaviestQueries;
    const double weight = static_cast<double>(std::min(observation.queries, most));
    const double keep = fixed_exp2(-static_cast<double>(gap) / memory_tokens_);
    last_observed_ = book.now();
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (!book.resident(page)) continue;
      lift_[page] = spread.per_token[page] * scale;
      const double expected = expected_now_[page] * per_expected;
      received_[page] = without_dust(received_[page] * keep + weight * lift_[page]);
      expected_sum_[page] = without_dust(expected_sum_[page] * keep + weight * expected);
      const double ratio = (received_[page] + prior_) / (expected_sum_[page] + prior_);
      evidence_[page] = beta_ * clipped_log2(ratio);
      peak_[page].fade(keep, static_cast<double>(gap) / memory_tokens_);
      if (gap > 0) peak_[page].reach(lift_[page] / expected);
      level_[page] = base_[page] + evidence_[page] + gamma_ * peak_[page].clipped_bits();
    }
    switch (rule_) {
      case RefreshRule::kLift:
        return refresh_top(book, spread, totals.resident_movable,
                           [this](PageIndex page) { return lift_[page]; });
      case RefreshRule::kExpected:
        return refresh_top(book, spread, totals.resident_movable, [&](PageIndex page) {
          return lift_[page] / (expected_now_[page] * per_expected);
        });
      case RefreshRule::kUniform:
        return refresh_uniform(book, spread);
      case RefreshRule::kNone:
        return;
    }
  }

  void on_changed(const PageBook& book, PageIndex page) override {
    const PageParameters parameters = book.parameters(page);
    base_[page] = fixed_log2(parameters.b) + fixed_log2(parameters.b_scale);
    level_[page] = base_[page] + evidence_[page] + gamma_ * peak_[page].clipped_bits();
    rate_[page] = parameters.rate;
    lead_[page] = parameters.lead;
    if (!ages_.plain()) turn_decay_[page] = parameters.turn_decay;
  }

  void on_evicted(const PageBook& book, PageIndex page) override {
    // Pages that do not move have no share; one that is un-pinned while it is away has had none.
    absent_share_[page] = !book.movable(page)
                              ? 0.0
                              : static_cast<double>(book.tokens(page)) * lift_[page] /
                                    static_cast<double>(book.movable_tokens());
  }
  void on_truncate(const PageBook& book) override { resize(book); }
  void on_group_ended(const PageBook& book, PageIndex page) override {
    tref_[page] = static_cast<double>(book.now());
    ages_.reset(book, page, Ages::Why::kFresh);
  }

  double score(const PageBook& book, PageIndex page) const override {
    return level_[page] + decay(book, page);
  }
  void scores(const PageBook& book, PageIndex first, absl::Span<double> out) const override {
    const double now = book.time(Clock::kTokens);
    if (ages_.plain()) {
      for (size_t i = 0; i < out.size(); ++i) {
        const PageIndex page = first + static_cast<PageIndex>(i);
        out[i] = level_[page] + plain_decay(now, page);
      }
      return;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = score(book, first + static_cast<PageIndex>(i));
    }
  }
  // Pages fall by their rate until the cap holds them. Where other clocks run, only the cap does.
  Outlook outlook(const PageBook&, PageIndex first, PageIndex count, double low) const override {
    double fastest = 0.0;
    double floor = std::numeric_limits<double>::infinity();
    for (PageIndex page = first; page < first + count; ++page) {
      fastest = std::max(fastest, rate_[page]);
      floor = std::min(floor, level_[page]);
    }
    if (!ages_.plain()) {
      floor = Outlook::below(floor - decay_cap_);
      return {.low = floor, .fall = 0.0, .floor = floor};
    }
    return {.low = Outlook::below(low),
            .fall = fastest * (1.0 + Outlook::kMargin),
            .floor = Outlook::below(floor - decay_cap_)};
  }
  Step tref(const PageBook&, PageIndex page) const override {
    return static_cast<Step>(tref_[page]);
  }
  std::vector<Term> explain(const PageBook& book, PageIndex page) const override {
    const double factor = fixed_log2(book.adjustment(page).b_scale);
    std::vector<Term> terms = {{.name = "base", .value = base_[page] - factor},
                               {.name = "decay", .value = decay(book, page)},
                               {.name = "evidence", .value = evidence_[page]}};
    if (gamma_ != 0.0) {
      terms.push_back({.name = "peak", .value = gamma_ * peak_[page].clipped_bits()});
    }
    if (factor != 0.0) terms.push_back({.name = "superseded", .value = factor});
    return terms;
  }
  uint64_t skipped_observations() const override { return skipped_; }
  size_t bytes() const override {
    const size_t doubles = base_.capacity() + level_.capacity() + expected_now_.capacity() +
                           rate_.capacity() + tref_.capacity() + evidence_.capacity() +
                           received_.capacity() + expected_sum_.capacity() + lift_.capacity() +
                           absent_share_.capacity() + turn_decay_.capacity();
    return sizeof(MemdecayN) + ages_.bytes() + doubles * sizeof(double) +
           peak_.capacity() * sizeof(Peak) + lead_.capacity() * sizeof(RegionId) +
           order_.capacity() * sizeof(Ranked) + expected_.capacity() * sizeof(DistanceTable);
  }

 private:
  // K and its logarithm, which is taken only when K rises.
  struct Peak {
    double ratio = 1.0;
    double bits = 0.0;

    void fade(double keep, double bits_lost) {
      ratio = std::max(ratio * keep, 1.0);
      bits = std::max(bits - bits_lost, 0.0);
    }
    void reach(double now) {
      if (now <= ratio) return;
      ratio = now;
      bits = fixed_log2(now);
    }
    double clipped_bits() const { return std::min(bits, kHighestPeak); }
  };
  struct Ranked {
    double ratio = 0.0;
    PageIndex page = 0;
  };
  // Over the movable pages.
  struct Totals {
    double mass = 0.0;          // A
    double absent_share = 0.0;  // phi
    double expected = 0.0;      // sum of tokens x expected lift, evicted pages included
    size_t resident_movable = 0;
  };

  void resize(const PageBook& book) {
    for (std::vector<double>* column : {&base_, &level_, &expected_now_, &rate_, &tref_, &evidence_,
                                        &received_, &expected_sum_, &lift_, &absent_share_}) {
      fit(*column, book.end());
    }
    fit(peak_, book.end());
    fit(lead_, book.end());
    ages_.fit_to(book.end());
    if (!ages_.plain()) fit(turn_decay_, book.end());
  }

  void reference(const PageBook& book, PageIndex page) {
    ages_.for_lifted(book, page, [this, &book](PageIndex at) {
      tref_[at] = static_cast<double>(book.now());
      ages_.reset(book, at, Ages::Why::kReferenced);
    });
  }

  // The logarithm is only taken where the clip leaves it.
  static double clipped_log2(double ratio) {
    if (ratio <= 0.25) return kLowestEvidence;
    if (ratio >= 16.0) return kHighestEvidence;
    return fixed_log2(ratio);
  }

  Totals add_up(const PageBook& book, const Observation& observation, const Spread& spread) {
    Totals totals;
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (!book.sealed(page)) continue;
      expected_now_[page] = expected_lift(book, page, observation);
      if (!book.movable(page)) continue;
      const double tokens = static_cast<double>(book.tokens(page));
      totals.expected += tokens * expected_now_[page];
      if (book.resident(page)) {
        totals.mass += tokens * spread.per_token[page];
        ++totals.resident_movable;
      } else {
        totals.absent_share += absent_share_[page];
      }
    }
    return totals;
  }

  double expected_lift(const PageBook& book, PageIndex page, const Observation& observation) const {
    const uint64_t half_window = (std::max(observation.queries, 1U) - 1) / 2;
    const uint64_t query = observation.query_position != 0 ? observation.query_position
                                                           : book.last_position(book.end() - 1) + 1;
    const uint64_t from = book.last_position(page) + half_window;
    const uint64_t distance = query > from ? query - from : 0;
    const int bin = distance == 0 ? 0 : static_cast<int>(std::bit_width(distance)) - 1;
    return expected_[lead_[page]][static_cast<size_t>(std::min(bin, kDistanceBins - 1))];
  }

  // The listed pages whose ratio is high enough, as many of the highest as the fraction allows.
  template <typename Ratio>
  void refresh_top(const PageBook& book, const Spread& spread, size_t resident_movable,
                   Ratio ratio_of) {
    order_.clear();
    for (PageIndex page : spread.listed) {
      if (!book.movable(page)) continue;
      const double ratio = ratio_of(page);
      if (ratio >= refresh_lift_) order_.push_back({.ratio = ratio, .page = page});
    }
    std::sort(order_.begin(), order_.end(), [](const Ranked& a, const Ranked& b) {
      return a.ratio != b.ratio ? a.ratio > b.ratio : a.page < b.page;
    });
    // ceil(fraction * pages), whatever the rounding of the product.
    const double allowed = refresh_fraction_ * static_cast<double>(resident_movable) - 1e-9;
    for (size_t rank = 0; rank < order_.size() && static_cast<double>(rank) < allowed; ++rank) {
      reference(book, order_[rank].page);
    }
  }

  // The paper's threshold: N counts all resident sealed tokens.
  void refresh_uniform(const PageBook& book, const Spread& spread) {
    const double threshold = tau_ / static_cast<double>(spread.tokens);
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (!book.resident(page) || book.other_tokens(page) == 0) continue;
      if (spread.per_token[page] >= threshold) reference(book, page);
    }
  }

  // A page in decay loses at most decay_cap_ half-lives.
  double plain_decay(double now, PageIndex page) const {
    return -std::min((now - tref_[page]) * rate_[page], decay_cap_);
  }
  double decay(const PageBook& book, PageIndex page) const {
    if (ages_.plain()) return plain_decay(book.time(Clock::kTokens), page);
    const Pace pace{.rate = rate_[page],
                    .turn_decay = turn_decay_[page],
                    .clock = book.regions()[lead_[page]].clock};
    return -std::min(ages_.lost(book, page, tref_[page], pace), decay_cap_);
  }

  double beta_;
  double gamma_;
  double decay_cap_;
  double memory_tokens_;
  double prior_;
  RefreshRule rule_;
  double refresh_lift_;
  double refresh_fraction_;
  double tau_;
  Ages ages_;
  std::vector<DistanceTable> expected_;  // by region

  Step last_observed_ = 0;
  uint64_t skipped_ = 0;
  // By page.
  std::vector<double> base_;   // log2 b, factors included
  std::vector<double> level_;  // base + evidence: the score of a page just refreshed
  std::vector<double> rate_;   // half-lives a unit of the clock
  std::vector<double> tref_;
  std::vector<double> evidence_;      // beta * clip(log2 q)
  std::vector<double> received_;      // E
  std::vector<double> expected_sum_;  // X
  std::vector<double> expected_now_;  // at the last observation; scratch
  std::vector<Peak> peak_;
  std::vector<double> lift_;          // u at the last observation it was resident at
  std::vector<double> absent_share_;  // of movable mass; means nothing while resident
  std::vector<double> turn_decay_;    // half-lives a turn; unless plain
  std::vector<RegionId> lead_;        // whose table of expected lift
  std::vector<Ranked> order_;         // scratch of refresh_top()
};

}  // namespace

std::unique_ptr<Scorer> make_memdecay_n(const PolicyOptions& options) {
  return std::make_unique<MemdecayN>(options);
}

}  // namespace memdecay::policy
