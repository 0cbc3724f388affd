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
// Mixed, hinted and sink pages are few and computed directly. Thread: the owning Policy's.
// Invariant: (now - t0) / smallest half-life <= kRebaseHalfLives. Not here: the log-linear forms
// (memdecay_n.cc).
#include <algorithm>
#include <limits>

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
        tau_(options.tau_uniform.value_or(kDefaultTau)) {
    factors_.assign(options.regions.size(), 1.0);
    for (const RegionParameters& region : options.regions) {
      rates_.push_back(1.0 / region.half_life_tokens);
    }
    shortest_ = options.regions.front().half_life_tokens;
    for (const RegionParameters& region : options.regions) {
      shortest_ = std::min(shortest_, region.half_life_tokens);
    }
  }

  std::unique_ptr<Scorer> clone() const override { return std::make_unique<Memdecay>(*this); }
  Grace grace() const override { return Grace::kNone; }
  Moves moves() const override { return Moves::kWithTheClock; }

  void on_seal(const PageBook& book, PageIndex page) override {
    resize(book);
    state_[page] = {.attention = 0.0, .tref = book.now()};
    if (book.holds_sinks(page)) sinks_[page] = state_[page];
    on_changed(book, page);
  }

  void on_step(const PageBook& book) override {
    rebase(book);
    for (size_t region = 0; region < factors_.size(); ++region) {
      const double half_life = book.regions()[region].half_life_tokens;
      factors_[region] = fixed_exp2(-static_cast<double>(book.now() - t0_) / half_life);
    }
  }

  void on_observe(const PageBook& book, const Observation& observation,
                  const Spread& spread) override {
    if (observation.queries == 0 || spread.tokens == 0) return;
    const double threshold = tau_ / static_cast<double>(spread.tokens);
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (!book.resident(page)) continue;
      if (receive(state_[page], spread.per_token[page], threshold, book.now())) {
        refresh_base(book, page);
      }
      if (book.holds_sinks(page)) {
        receive(sinks_[page], spread.per_sink_token, threshold, book.now());
      }
    }
  }

  void on_changed(const PageBook& book, PageIndex page) override {
    const bool direct = book.holds_sinks(page) || book.runs(page).size() > 1 ||
                        book.adjustment(page).half_life_scale != 1.0;
    region_[page] = direct ? kDirect : book.runs(page).front().region;
    refresh_base(book, page);
  }

  void on_truncate(const PageBook& book) override { resize(book); }

  void on_group_ended(const PageBook& book, PageIndex page) override {
    state_[page].tref = book.now();
    if (book.holds_sinks(page)) sinks_[page].tref = book.now();
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
           base_.capacity() * sizeof(double) + region_.capacity() * sizeof(RegionId);
  }

 private:
  void resize(const PageBook& book) {
    fit(state_, book.end());
    fit(base_, book.end());
    fit(region_, book.end(), kDirect);
    fit(sinks_, std::min(book.end(), book.sink_pages()));
  }

  void rebase(const PageBook& book) {
    if (static_cast<double>(book.now() - t0_) <= kRebaseHalfLives * shortest_) return;
    t0_ = book.now();
    for (PageIndex page = 0; page < book.end(); ++page) refresh_base(book, page);
  }

  // True if the clock was reset.
  bool receive(TokenState& tokens, double attention, double threshold, Step now) const {
    tokens.attention = without_dust(rho_ * tokens.attention + (1.0 - rho_) * attention);
    if (attention < threshold) return false;
    tokens.tref = now;
    return true;
  }

  void refresh_base(const PageBook& book, PageIndex page) {
    if (region_[page] == kDirect) return;
    const RegionParameters& region = book.regions()[region_[page]];
    const double age = static_cast<double>(state_[page].tref) - static_cast<double>(t0_);
    base_[page] =
        region.b * book.adjustment(page).b_scale * fixed_exp2(age / region.half_life_tokens);
  }

  // 1/half-life of the run that decays fastest.
  double fastest_of(const PageBook& book, PageIndex page) const {
    double rate = 0.0;
    for (const RegionRun& run : book.runs(page)) rate = std::max(rate, rates_[run.region]);
    return rate / book.adjustment(page).half_life_scale;
  }

  double decayed(const PageBook& book, PageIndex page) const {
    if (region_[page] != kDirect) return base_[page] * factors_[region_[page]];
    const Adjustment adjustment = book.adjustment(page);
    uint32_t sinks_left = book.sink_tokens(page);
    double sum = 0.0;
    for (const RegionRun& run : book.runs(page)) {
      const RegionParameters& region = book.regions()[run.region];
      const double half_life = region.half_life_tokens * adjustment.half_life_scale;
      const auto share = [&](uint32_t count, Step since) {
        const double age = static_cast<double>(book.now() - since);
        return static_cast<double>(count) * region.b * fixed_exp2(-age / half_life);
      };
      const uint32_t as_sinks = std::min<uint32_t>(sinks_left, run.tokens);
      if (as_sinks > 0) sum += share(as_sinks, sinks_[page].tref);
      if (run.tokens > as_sinks) sum += share(run.tokens - as_sinks, state_[page].tref);
      sinks_left -= as_sinks;
    }
    return adjustment.b_scale * sum / static_cast<double>(book.tokens(page));
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
  double shortest_ = 0.0;  // half-life
  Step t0_ = 0;
  std::vector<double> rates_;      // by region: 1/h
  std::vector<double> factors_;    // by region: 2^(-(now - t0)/h)
  std::vector<TokenState> state_;  // by page
  std::vector<double> base_;       // B_p; of pages of one region
  std::vector<RegionId> region_;   // by page; kDirect: no base
  std::vector<TokenState> sinks_;  // of the first pages
};

}  // namespace

std::unique_ptr<Scorer> make_memdecay(const PolicyOptions& options) {
  return std::make_unique<Memdecay>(options);
}

}  // namespace memdecay::policy
