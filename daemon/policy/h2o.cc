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
#include "daemon/policy/kept_score.h"

namespace memdecay::policy {
namespace {

class H2o final : public KeptScore {
 public:
  std::unique_ptr<Scorer> clone() const override { return std::make_unique<H2o>(*this); }
  Grace grace() const override { return Grace::kUntilObserved; }
  Moves moves() const override { return Moves::kWhenObserved; }

  void on_observe(const PageBook& book, const Observation& observation,
                  const Spread& spread) override {
    const double queries = static_cast<double>(observation.queries);
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (book.resident(page)) score_[page] += queries * book.attention(page, spread);
    }
  }
  std::vector<Term> explain(const PageBook&, PageIndex page) const override {
    return {{.name = "attention_sum", .value = score_[page]}};
  }
  size_t bytes() const override { return sizeof(H2o) + column_bytes(); }
};

}  // namespace

std::unique_ptr<Scorer> make_h2o() { return std::make_unique<H2o>(); }

}  // namespace memdecay::policy
