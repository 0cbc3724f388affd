// `memdecay`: the paper, verbatim (Matam & Kim, arXiv 2607.10582), with its known weakness.
//
//   a_i  <-  rho a_i + (1 - rho) A_i           attention received by token i; rho = 0.9
//   tref <-  t if A_i >= tau                   tau = 2/N, N cached tokens; moves the clock only
//   s_i  =   b_r 2^(-(t - tref_i)/h_r) + alpha a_i           alpha = 0.5
//   S_p  =   mean of s_i over the page's tokens
//
// Exact without a loop over tokens: an observation gives every non-sink token of a page the same
// A_i, so they share one a and one tref; the sink tokens of the first pages have their own. For a
// page of one region the decayed part is B_p * 2^(-(t - t0)/h_r) with
// B_p = b_r 2^((tref - t0)/h_r), so a scan takes one exponential a region, not one a page. B_p is
// always computed from (tref, t0), never scaled: equal pages keep equal bits across a change of t0.
// The same holds for regions that age by turns or seconds, each clock having its own t0. Mixed,
// hinted, held, growing and sink pages are few and computed directly.
// Thread: the owning Policy's. Invariant: no region has lost more than kRebaseHalfLives since t0.
// Not here: the log-linear forms (memdecay_n.cc).
#include <algorithm>
#include <array>
#include <limits>

#include "daemon/policy/ages.h"
#include "daemon/policy/columns.h"
#include "daemon/policy/math.h"
#include "daemon/policy/scorer.h"

namespace memdecay::policy {
namespace {

constexpr double kDefaultAlpha = 0.5;
constexpr double kDefaultRho = 0.9;
constexpr double kDefaultTau = 2.0;
// 2^±400 leaves room for b; what underflows is below 2^-600.
constexpr double kRebaseHalfLives = 400.0;
constexpr RegionId kDirect = 0xFFFF;  // computed page by page

// What the tokens of a page have in common; the sink tokens of a page in another one.
struct TokenState {
  double attention = 0.0;
  Step tref = 0;
};

class Memdecay final : public Scorer {
 public:
  explicit Memdecay(const PolicyOptions& options)
      : alpha_(options.alpha.value_or(kDefaultAlpha)),
        rho_(options.rho.value_or(kDefaultRho)),
        tau_(options.tau_uniform.value_or(kDefaultTau)),
        ages_(options),
        sink_ages_(options) {
    factors_.assign(options.regions.size(), 1.0);
    derive_rates(options.regions);
  }

  std::unique_ptr<Scorer> clone() const override { return std::make_unique<Memdecay>(*this); }
  Grace grace() const override { return Grace::kNone; }
  Moves moves() const override { return Moves::kWithTheClock; }

  void on_seal(const PageBook& book, PageIndex page) override {
    resize(book);
    state_[page] = {.attention = 0.0, .tref = book.now()};
    if (book.holds_sinks(page)) sinks_[page] = state_[page];
    restart(book, page);
    on_changed(book, page);
  }

  void on_clock(const PageBook& book) override {
    double fastest = 0.0;
    for (size_t region = 0; region < factors_.size(); ++region) {
      const double exponent = passed(book, book.regions()[region]);
      factors_[region] = fixed_exp2(-exponent);
      fastest = std::max(fastest, exponent);
    }
    if (fastest > kRebaseHalfLives) rebase(book);
  }

  void on_regions(const PageBook& book) override {
    derive_rates(book.regions());
    rebase(book);
  }

  void on_observe(const PageBook& book, const Observation& observation,
                  const Spread& spread) override {
    if (observation.queries == 0 || spread.tokens == 0) return;
    const double threshold = tau_ / static_cast<double>(spread.tokens);
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (!book.resident(page)) continue;
      if (receive(state_[page], spread.per_token[page], threshold)) reference(book, page);
      if (book.holds_sinks(page) && receive(sinks_[page], spread.per_sink_token, threshold)) {
        sinks_[page].tref = book.now();
        sink_ages_.reset(book, page, Ages::Why::kFresh);
      }
    }
  }

  void on_changed(const PageBook& book, PageIndex page) override {
    const RegionId region = book.runs(page).front().region;
    const bool direct = book.holds_sinks(page) || book.runs(page).size() > 1 ||
                        book.adjustment(page).half_life_scale != 1.0 || book.held(page) ||
                        book.regions()[region].grows();
    region_[page] = direct ? kDirect : region;
    refresh_base(book, page);
  }

  void on_truncate(const PageBook& book) override { resize(book); }

  void on_group_ended(const PageBook& book, PageIndex page) override {
    state_[page].tref = book.now();
    if (book.holds_sinks(page)) sinks_[page].tref = book.now();
    restart(book, page);
    refresh_base(book, page);
  }

  double score(const PageBook& book, PageIndex page) const override {
    return decayed(book, page) + received(book, page);
  }

  void scores(const PageBook& book, PageIndex first, absl::Span<double> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      const PageIndex page = first + static_cast<PageIndex>(i);
      const RegionId region = region_[page];
      if (region == kDirect) {
        out[i] = book.sealed(page) ? score(book, page) : 0.0;
      } else {
        out[i] = base_[page] * factors_[region] + alpha_ * state_[page].attention;
      }
    }
  }

  // s(t) >= s(t0) 2^(-x) >= s(t0) (1 - x ln 2), x half-lives of the page that decays fastest; and
  // what attention gave does not decay. Long histories end there, where only tref tells pages
  // apart.
  Outlook outlook(const PageBook& book, PageIndex first, PageIndex count,
                  double low) const override {
    double fastest = 0.0;
    double floor = std::numeric_limits<double>::infinity();
    Step oldest = std::numeric_limits<Step>::max();
    for (PageIndex page = first; page < first + count; ++page) {
      if (!book.sealed(page)) continue;
      const double rate = region_[page] == kDirect ? fastest_of(book, page) : rates_[region_[page]];
      fastest = std::max(fastest, rate);
      floor = std::min(floor, received(book, page));
      oldest = std::min(oldest, tref(book, page));
    }
    if (!ages_.plain()) return {.low = floor, .fall = 0.0, .floor = floor, .tref = oldest};
    return {.low = low * (1.0 - Outlook::kMargin),
            .fall = low * fastest * (kLn2 + Outlook::kMargin),
            .floor = floor,
            .tref = oldest};
  }
  Step tref(const PageBook& book, PageIndex page) const override {
    if (!book.holds_sinks(page)) return state_[page].tref;
    if (book.other_tokens(page) == 0) return sinks_[page].tref;
    return std::min(state_[page].tref, sinks_[page].tref);
  }

  std::vector<Term> explain(const PageBook& book, PageIndex page) const override {
    return {{.name = "decayed_base", .value = decayed(book, page)},
            {.name = "attention", .value = received(book, page)}};
  }

  size_t bytes() const override {
    return sizeof(Memdecay) + (state_.capacity() + sinks_.capacity()) * sizeof(TokenState) +
           base_.capacity() * sizeof(double) + region_.capacity() * sizeof(RegionId) +
           ages_.bytes() + sink_ages_.bytes();
  }

 private:
  void resize(const PageBook& book) {
    const size_t with_sinks = std::min(book.end(), book.sink_pages());
    fit(state_, book.end());
    fit(base_, book.end());
    fit(region_, book.end(), kDirect);
    fit(sinks_, with_sinks);
    ages_.fit_to(book.end());
    sink_ages_.fit_to(with_sinks);
  }

  void derive_rates(const std::vector<RegionParameters>& regions) {
    rates_.clear();
    for (const RegionParameters& region : regions) {
      rates_.push_back(region.grows() ? 0.0 : 1.0 / region.half_life);
    }
  }

  // Half-lives of the region since start_.
  double passed(const PageBook& book, const RegionParameters& region) const {
    if (region.grows()) return 0.0;  // its pages are computed one by one
    const auto since_start = [&](Clock clock) { return book.time(clock) - start_of(clock); };
    return since_start(region.clock) / region.half_life +
           since_start(Clock::kTurns) * region.turn_decay;
  }
  double start_of(Clock clock) const { return start_[static_cast<size_t>(clock)]; }

  void rebase(const PageBook& book) {
    for (const Clock clock : {Clock::kTokens, Clock::kTurns, Clock::kSeconds}) {
      start_[static_cast<size_t>(clock)] = book.time(clock);
    }
    factors_.assign(factors_.size(), 1.0);
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (book.sealed(page)) on_changed(book, page);
    }
  }

  // True if the clock is to be reset.
  bool receive(TokenState& tokens, double attention, double threshold) const {
    tokens.attention = without_dust(rho_ * tokens.attention + (1.0 - rho_) * attention);
    return attention >= threshold;
  }

  void restart(const PageBook& book, PageIndex page) {
    ages_.reset(book, page, Ages::Why::kFresh);
    if (book.holds_sinks(page)) sink_ages_.reset(book, page, Ages::Why::kFresh);
  }

  void reference(const PageBook& book, PageIndex page) {
    ages_.for_lifted(book, page, [this, &book](PageIndex at) {
      state_[at].tref = book.now();
      ages_.reset(book, at, Ages::Why::kReferenced);
      refresh_base(book, at);
    });
  }

  void refresh_base(const PageBook& book, PageIndex page) {
    if (region_[page] == kDirect) return;
    const RegionParameters& region = book.regions()[region_[page]];
    const double tref = static_cast<double>(state_[page].tref);
    double exponent =
        (ages_.since(region.clock, page, tref) - start_of(region.clock)) / region.half_life;
    if (region.turn_decay > 0.0) {
      exponent +=
          (ages_.since(Clock::kTurns, page, tref) - start_of(Clock::kTurns)) * region.turn_decay;
    }
    if (rates_[region_[page]] > 0.0) exponent += ages_.lift(page);
    base_[page] = region.b * book.adjustment(page).b_scale * fixed_exp2(exponent);
  }

  // 1/half-life of the run that decays fastest.
  double fastest_of(const PageBook& book, PageIndex page) const {
    double rate = 0.0;
    for (const RegionRun& run : book.runs(page)) rate = std::max(rate, rates_[run.region]);
    return rate / book.adjustment(page).half_life_scale;
  }

  // How a run of the page ages.
  Pace pace_of(const PageBook& book, PageIndex page, RegionId of) const {
    const RegionParameters& region = book.regions()[of];
    if (book.held(page)) return {.clock = region.clock};
    const double scaled = rates_[of] / book.adjustment(page).half_life_scale;
    return {.rate = region.grows() ? -1.0 / region.doubling : scaled,
            .turn_decay = region.turn_decay,
            .clock = region.clock};
  }

  double decayed(const PageBook& book, PageIndex page) const {
    if (region_[page] != kDirect) return base_[page] * factors_[region_[page]];
    uint32_t sinks_left = book.sink_tokens(page);
    double sum = 0.0;
    for (const RegionRun& run : book.runs(page)) {
      const Pace pace = pace_of(book, page, run.region);
      const auto share = [&](uint32_t count, const Ages& ages, Step since) {
        const double lost = ages.lost(book, page, static_cast<double>(since), pace);
        return static_cast<double>(count) * book.regions()[run.region].b * fixed_exp2(-lost);
      };
      const uint32_t as_sinks = std::min<uint32_t>(sinks_left, run.tokens);
      if (as_sinks > 0) sum += share(as_sinks, sink_ages_, sinks_[page].tref);
      if (run.tokens > as_sinks) sum += share(run.tokens - as_sinks, ages_, state_[page].tref);
      sinks_left -= as_sinks;
    }
    return book.adjustment(page).b_scale * sum / static_cast<double>(book.tokens(page));
  }

  double received(const PageBook& book, PageIndex page) const {
    if (!book.holds_sinks(page)) return alpha_ * state_[page].attention;
    const double sum = static_cast<double>(book.sink_tokens(page)) * sinks_[page].attention +
                       static_cast<double>(book.other_tokens(page)) * state_[page].attention;
    return alpha_ * sum / static_cast<double>(book.tokens(page));
  }

  double alpha_;
  double rho_;
  double tau_;
  Ages ages_;
  Ages sink_ages_;                       // of the first pages
  std::array<double, kClocks> start_{};  // t0, by Clock
  std::vector<double> rates_;            // by region: 1/h; 0: grows
  std::vector<double> factors_;          // by region: 2^(-half-lives since t0)
  std::vector<TokenState> state_;        // by page
  std::vector<double> base_;             // B_p; of pages of one region
  std::vector<RegionId> region_;         // by page; kDirect: no base
  std::vector<TokenState> sinks_;        // of the first pages
};

}  // namespace

std::unique_ptr<Scorer> make_memdecay(const PolicyOptions& options) {
  return std::make_unique<Memdecay>(options);
}

}  // namespace memdecay::policy
