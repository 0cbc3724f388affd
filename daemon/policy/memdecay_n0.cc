// `memdecay_n0`: an earlier log-linear form, frozen. It is the reference of the golden histories
// and no product default; nothing of it can be tuned but regions and protections.
//
//   u_p = (M_p/n_p) (N - sinks) / (1 - S - T)
//   every resident page: E <- g E + u, X <- g X + 1, g = 2^(-1/256) an observation; both start at 0
//   refresh: listed pages by (u descending, page); the first ceil(P/10) of them with u > 1
//   l_p = log2 b - (t - tref)/h + 2 clip(log2((E + 2)/(X + 2)), -2, 4)
//
// If 1 - S - T < 1e-6 only X moves. A mixed page has its largest b and its longest h.
// Thread: the owning Policy's.
#include <algorithm>
#include <limits>

#include "daemon/policy/columns.h"
#include "daemon/policy/math.h"
#include "daemon/policy/scorer.h"

namespace memdecay::policy {
namespace {

constexpr double kPrior = 2.0;
constexpr double kBeta = 2.0;
constexpr double kLowestEvidence = -2.0;
constexpr double kHighestEvidence = 4.0;
constexpr double kLeastMass = 1e-6;
constexpr double kMemoryObservations = 256.0;
constexpr uint32_t kRefreshOneIn = 10;

struct PageState {
  double base = 0.0;  // log2 of b, factors included
  double half_life = 1.0;
  double received = 0.0;  // E
  double expected = 0.0;  // X
  double evidence = 0.0;  // kBeta * clip(...)
  Step tref = 0;
};

class MemdecayN0 final : public Scorer {
 public:
  std::unique_ptr<Scorer> clone() const override { return std::make_unique<MemdecayN0>(*this); }
  Grace grace() const override { return Grace::kUntilObserved; }
  Moves moves() const override { return Moves::kWithTheClock; }

  void on_seal(const PageBook& book, PageIndex page) override {
    fit(state_, book.end());
    state_[page] = {.tref = book.now()};
    on_changed(book, page);
  }

  void on_observe(const PageBook& book, const Observation& observation,
                  const Spread& spread) override {
    const double left = 1.0 - observation.sink - observation.tail;
    const bool silent = left < kLeastMass;
    // Without the sinks' page (a parked session) there may be fewer tokens than sinks.
    const double others = static_cast<double>(spread.tokens) - static_cast<double>(book.sinks());
    const double scale = std::max(others, 0.0) / left;
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (!book.resident(page)) continue;
      PageState& state = state_[page];
      state.received = without_dust(state.received * memory_);
      state.expected = state.expected * memory_ + 1.0;
      if (!silent) state.received += spread.per_token[page] * scale;
      const double ratio = (state.received + kPrior) / (state.expected + kPrior);
      state.evidence = kBeta * std::clamp(fixed_log2(ratio), kLowestEvidence, kHighestEvidence);
    }
    if (!silent) refresh(book, spread, scale);
  }

  void on_changed(const PageBook& book, PageIndex page) override {
    const PageParameters parameters = book.parameters(page);
    state_[page].base = fixed_log2(parameters.b) + fixed_log2(parameters.b_scale);
    state_[page].half_life = parameters.half_life;
  }

  void on_truncate(const PageBook& book) override { fit(state_, book.end()); }
  void on_group_ended(const PageBook& book, PageIndex page) override {
    state_[page].tref = book.now();
  }

  double score(const PageBook& book, PageIndex page) const override {
    return state_[page].base + decay(book, page) + state_[page].evidence;
  }
  void scores(const PageBook& book, PageIndex first, absl::Span<double> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = score(book, first + static_cast<PageIndex>(i));
    }
  }
  Outlook outlook(const PageBook& book, PageIndex first, PageIndex count,
                  double low) const override {
    double fastest = 0.0;
    for (PageIndex page = first; page < first + count; ++page) {
      if (book.sealed(page)) fastest = std::max(fastest, 1.0 / state_[page].half_life);
    }
    return {.low = Outlook::below(low),
            .fall = fastest * (1.0 + Outlook::kMargin),
            .floor = -std::numeric_limits<double>::infinity()};
  }
  Step tref(const PageBook&, PageIndex page) const override { return state_[page].tref; }
  std::vector<Term> explain(const PageBook& book, PageIndex page) const override {
    return {{.name = "base", .value = state_[page].base},
            {.name = "decay", .value = decay(book, page)},
            {.name = "evidence", .value = state_[page].evidence}};
  }
  size_t bytes() const override {
    return sizeof(MemdecayN0) + state_.capacity() * sizeof(PageState) +
           order_.capacity() * sizeof(Ranked);
  }

 private:
  struct Ranked {
    double lift = 0.0;
    PageIndex page = 0;
  };

  double decay(const PageBook& book, PageIndex page) const {
    return -static_cast<double>(book.now() - state_[page].tref) / state_[page].half_life;
  }

  void refresh(const PageBook& book, const Spread& spread, double scale) {
    order_.clear();
    for (PageIndex page : spread.listed) {
      const double lift = spread.per_token[page] * scale;
      if (lift > 1.0) order_.push_back({.lift = lift, .page = page});
    }
    std::sort(order_.begin(), order_.end(), [](const Ranked& a, const Ranked& b) {
      return a.lift != b.lift ? a.lift > b.lift : a.page < b.page;
    });
    const size_t most = (spread.pages + kRefreshOneIn - 1) / kRefreshOneIn;
    for (size_t rank = 0; rank < std::min(most, order_.size()); ++rank) {
      state_[order_[rank].page].tref = book.now();
    }
  }

  double memory_ = fixed_exp2(-1.0 / kMemoryObservations);  // g
  std::vector<PageState> state_;
  std::vector<Ranked> order_;  // scratch of refresh()
};

}  // namespace

std::unique_ptr<Scorer> make_memdecay_n0() { return std::make_unique<MemdecayN0>(); }

}  // namespace memdecay::policy
