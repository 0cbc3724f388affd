// `norm_sum`: the sum of `h2o` over the lifetime, so that an old page is not worth more for being
// old (the usual correction of accumulated scores; a plain mean over the queries that could attend
// to the page).
//
//   S_p  =  sum of queries * A_p  /  sum of queries        over the observations at which the page
//                                                          was resident; 0 before the first
//
// A_p as in h2o.cc. A page that is away neither gathers nor ages. Regions, hints and groups do not
// matter. Thread: the owning Policy's.
#include "daemon/policy/kept_score.h"

namespace memdecay::policy {
namespace {

class NormSum final : public KeptScore {
 public:
  std::unique_ptr<Scorer> clone() const override { return std::make_unique<NormSum>(*this); }
  Grace grace() const override { return Grace::kUntilObserved; }
  Moves moves() const override { return Moves::kWhenObserved; }

  void on_seal(const PageBook& book, PageIndex page) override {
    KeptScore::on_seal(book, page);
    sum_[page] = 0.0;
    queries_[page] = 0.0;
  }
  void on_observe(const PageBook& book, const Observation& observation,
                  const Spread& spread) override {
    const double queries = static_cast<double>(observation.queries);
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (!book.resident(page)) continue;
      sum_[page] += queries * book.attention(page, spread);
      queries_[page] += queries;
      score_[page] = sum_[page] / queries_[page];
    }
  }
  std::vector<Term> explain(const PageBook&, PageIndex page) const override {
    return {{.name = "mean_attention", .value = score_[page]}};
  }
  size_t bytes() const override {
    return sizeof(NormSum) + column_bytes() + bytes_of(sum_) + bytes_of(queries_);
  }

 private:
  void fit_columns(size_t pages) override {
    KeptScore::fit_columns(pages);
    fit(sum_, pages);
    fit(queries_, pages);
  }

  // By page.
  std::vector<double> sum_;
  std::vector<double> queries_;  // that could have attended to it
};

}  // namespace

std::unique_ptr<Scorer> make_norm_sum() { return std::make_unique<NormSum>(); }

}  // namespace memdecay::policy
