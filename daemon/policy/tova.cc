// `tova`: token omission via attention (Oren, Hassid, Yarden, Adi and Schwartz, arXiv 2401.06104,
// section 3.2). What the last query attended to least goes first; there is no memory at all.
//
//   S_p  =  A_p of the last observation at which the page was resident; 0 before the first
//
// A_p as in h2o.cc (of several queries in one observation: their mean). Regions, hints and groups
// do not matter. Thread: the owning Policy's.
#include "daemon/policy/kept_score.h"

namespace memdecay::policy {
namespace {

class Tova final : public KeptScore {
 public:
  std::unique_ptr<Scorer> clone() const override { return std::make_unique<Tova>(*this); }
  Grace grace() const override { return Grace::kUntilObserved; }
  Moves moves() const override { return Moves::kWhenObserved; }

  void on_observe(const PageBook& book, const Observation&, const Spread& spread) override {
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (book.resident(page)) score_[page] = book.attention(page, spread);
    }
  }
  std::vector<Term> explain(const PageBook&, PageIndex page) const override {
    return {{.name = "last_attention", .value = score_[page]}};
  }
  size_t bytes() const override { return sizeof(Tova) + column_bytes(); }
};

}  // namespace

std::unique_ptr<Scorer> make_tova() { return std::make_unique<Tova>(); }

}  // namespace memdecay::policy
