// `norm_sum`: the sum of `h2o` over the lifetime, so that an old page is not worth more for being
// old (the usual correction of accumulated scores; a plain mean over the queries that could attend
// to the page).
//
//   S_p  =  sum of queries * A_p  /  sum of queries        over the observations at which the page
//                                                          was resident; 0 before the first
//
// A_p as in h2o.cc. A page that is away neither gathers nor ages. Regions, hints and groups do not
// matter. Thread: the owning Policy's.
#include "daemon/policy/columns.h"
#include "daemon/policy/scorer.h"

namespace memdecay::policy {
namespace {

class NormSum final : public Scorer {
 public:
  std::unique_ptr<Scorer> clone() const override { return std::make_unique<NormSum>(*this); }
  Grace grace() const override { return Grace::kUntilObserved; }
  Moves moves() const override { return Moves::kWhenObserved; }

  void on_seal(const PageBook& book, PageIndex page) override {
    resize(book);
    sum_[page] = 0.0;
    queries_[page] = 0.0;
    score_[page] = 0.0;
    tref_[page] = book.now();
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
  void on_truncate(const PageBook& book) override { resize(book); }

  double score(const PageBook&, PageIndex page) const override { return score_[page]; }
  void scores(const PageBook&, PageIndex first, absl::Span<double> out) const override {
    std::copy_n(score_.begin() + first, out.size(), out.begin());
  }
  Step tref(const PageBook&, PageIndex page) const override { return tref_[page]; }
  std::vector<Term> explain(const PageBook&, PageIndex page) const override {
    return {{.name = "mean_attention", .value = score_[page]}};
  }
  size_t bytes() const override {
    return sizeof(NormSum) + bytes_of(sum_) + bytes_of(queries_) + bytes_of(score_) +
           bytes_of(tref_);
  }

 private:
  void resize(const PageBook& book) {
    fit(sum_, book.end());
    fit(queries_, book.end());
    fit(score_, book.end());
    fit(tref_, book.end());
  }

  // By page.
  std::vector<double> sum_;
  std::vector<double> queries_;  // that could have attended to it
  std::vector<double> score_;
  std::vector<Step> tref_;  // of the seal
};

}  // namespace

std::unique_ptr<Scorer> make_norm_sum() { return std::make_unique<NormSum>(); }

}  // namespace memdecay::policy
