// `h2o`: heavy hitters (H2O: Zhang et al., arXiv 2306.14048, algorithm 1). The score of a token is
// the attention that it has received over all queries so far; what has received least goes first,
// outside the recent window.
//
//   S_p  <-  S_p + queries * A_p         A_p: attention a token of the page received, mean over its
//                                        tokens and over the observation's queries
//
// Pages stand for tokens, as everywhere here. A sum over time favours old tokens: that is the
// form's known weakness, and its strength for facts at the beginning. A page that is away gathers
// nothing and keeps what it has. Regions, hints and groups do not matter.
// Thread: the owning Policy's.
#include "daemon/policy/columns.h"
#include "daemon/policy/scorer.h"

namespace memdecay::policy {
namespace {

class H2o final : public Scorer {
 public:
  std::unique_ptr<Scorer> clone() const override { return std::make_unique<H2o>(*this); }
  Grace grace() const override { return Grace::kUntilObserved; }
  Moves moves() const override { return Moves::kWhenObserved; }

  void on_seal(const PageBook& book, PageIndex page) override {
    resize(book);
    sum_[page] = 0.0;
    tref_[page] = book.now();
  }
  void on_observe(const PageBook& book, const Observation& observation,
                  const Spread& spread) override {
    const double queries = static_cast<double>(observation.queries);
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (book.resident(page)) sum_[page] += queries * book.attention(page, spread);
    }
  }
  void on_truncate(const PageBook& book) override { resize(book); }

  double score(const PageBook&, PageIndex page) const override { return sum_[page]; }
  void scores(const PageBook&, PageIndex first, absl::Span<double> out) const override {
    std::copy_n(sum_.begin() + first, out.size(), out.begin());
  }
  Step tref(const PageBook&, PageIndex page) const override { return tref_[page]; }
  std::vector<Term> explain(const PageBook&, PageIndex page) const override {
    return {{.name = "attention_sum", .value = sum_[page]}};
  }
  size_t bytes() const override { return sizeof(H2o) + bytes_of(sum_) + bytes_of(tref_); }

 private:
  void resize(const PageBook& book) {
    fit(sum_, book.end());
    fit(tref_, book.end());
  }

  // By page.
  std::vector<double> sum_;
  std::vector<Step> tref_;  // of the seal
};

}  // namespace

std::unique_ptr<Scorer> make_h2o() { return std::make_unique<H2o>(); }

}  // namespace memdecay::policy
