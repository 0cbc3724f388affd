// `snapkv`: attention of an observation window (SnapKV: Li et al., arXiv 2404.14469, section 4).
// The window is the last W queries, whether of a prompt's end or of decoding; what they attended to
// least, goes first.
//
//   S_p  =  sum of w_j A_pj / sum of w_j     over the observations j of the window at which the
//                                            page was resident; w_j = queries of j, cut at the
//                                            window's far edge
//
// A_p as in h2o.cc. The paper pools over neighbouring positions so that a kept token keeps its
// context; the mean over a page's tokens does that here. No observation in the window while it was
// resident: the score stays as it was (0 before the first). W = `window_queries`, at most
// kMostWindow, since each observation of the window is kept: as a float, which is 24 bits of an
// A_p. Regions, hints and groups do not matter. Thread: the owning Policy's.
#include <array>

#include "daemon/policy/kept_score.h"

namespace memdecay::policy {
namespace {

constexpr size_t kMostWindow = 32;
constexpr float kAbsent = -1.0f;

class Snapkv final : public KeptScore {
 public:
  explicit Snapkv(const PolicyOptions& options)
      : window_(static_cast<size_t>(options.window_queries.value_or(kMostWindow))) {}

  std::unique_ptr<Scorer> clone() const override { return std::make_unique<Snapkv>(*this); }
  Grace grace() const override { return Grace::kUntilObserved; }
  Moves moves() const override { return Moves::kWhenObserved; }

  void on_seal(const PageBook& book, PageIndex page) override {
    KeptScore::on_seal(book, page);
    std::fill_n(row(page), window_, kAbsent);
  }

  void on_observe(const PageBook& book, const Observation& observation,
                  const Spread& spread) override {
    newest_ = (newest_ + 1) % window_;
    queries_[newest_] = observation.queries;
    const std::array<double, kMostWindow> weights = weigh();
    for (PageIndex page = 0; page < book.end(); ++page) {
      float* const seen = row(page);
      if (!book.resident(page)) {
        seen[newest_] = kAbsent;
        continue;
      }
      seen[newest_] = static_cast<float>(book.attention(page, spread));
      double sum = 0.0;
      double weight = 0.0;
      for (size_t slot = 0; slot < window_; ++slot) {
        if (seen[slot] < 0.0f) continue;
        sum += weights[slot] * static_cast<double>(seen[slot]);
        weight += weights[slot];
      }
      score_[page] = sum / weight;
    }
  }
  std::vector<Term> explain(const PageBook&, PageIndex page) const override {
    return {{.name = "window_attention", .value = score_[page]}};
  }
  size_t bytes() const override { return sizeof(Snapkv) + column_bytes() + bytes_of(seen_); }

 private:
  float* row(PageIndex page) { return seen_.data() + size_t{page} * window_; }

  void fit_columns(size_t pages) override {
    KeptScore::fit_columns(pages);
    fit(seen_, pages * window_, kAbsent);
  }

  // By slot: queries that count, newest observation first until the window is full.
  std::array<double, kMostWindow> weigh() const {
    std::array<double, kMostWindow> weights{};
    size_t left = window_;
    for (size_t back = 0; back < window_; ++back) {
      const size_t slot = (newest_ + window_ - back) % window_;
      const size_t counted = std::min<size_t>(queries_[slot], left);
      weights[slot] = static_cast<double>(counted);
      left -= counted;
    }
    return weights;
  }

  size_t window_;
  size_t newest_ = 0;
  std::array<uint32_t, kMostWindow> queries_{};  // by slot of the ring
  std::vector<float> seen_;                      // by page: A_p by slot, or kAbsent
};

}  // namespace

std::unique_ptr<Scorer> make_snapkv(const PolicyOptions& options) {
  return std::make_unique<Snapkv>(options);
}

}  // namespace memdecay::policy
