// `tova`: token omission via attention (Oren, Hassid, Yarden, Adi and Schwartz, arXiv 2401.06104,
// section 3.2). What the last query attended to least goes first; there is no memory at all.
//
//   S_p  =  A_p of the last observation at which the page was resident; 0 before the first
//
// A_p as in h2o.cc (of several queries in one observation: their mean). Regions, hints and groups
// do not matter. Thread: the owning Policy's.
#include "daemon/policy/columns.h"
#include "daemon/policy/scorer.h"

namespace memdecay::policy {
namespace {

class Tova final : public Scorer {
 public:
  std::unique_ptr<Scorer> clone() const override { return std::make_unique<Tova>(*this); }
  Grace grace() const override { return Grace::kUntilObserved; }
  Moves moves() const override { return Moves::kWhenObserved; }

  void on_seal(const PageBook& book, PageIndex page) override {
    resize(book);
    last_[page] = 0.0;
    tref_[page] = book.now();
  }
  void on_observe(const PageBook& book, const Observation&, const Spread& spread) override {
    for (PageIndex page = 0; page < book.end(); ++page) {
      if (book.resident(page)) last_[page] = book.attention(page, spread);
    }
  }
  void on_truncate(const PageBook& book) override { resize(book); }

  double score(const PageBook&, PageIndex page) const override { return last_[page]; }
  void scores(const PageBook&, PageIndex first, absl::Span<double> out) const override {
    std::copy_n(last_.begin() + first, out.size(), out.begin());
  }
  Step tref(const PageBook&, PageIndex page) const override { return tref_[page]; }
  std::vector<Term> explain(const PageBook&, PageIndex page) const override {
    return {{.name = "last_attention", .value = last_[page]}};
  }
  size_t bytes() const override { return sizeof(Tova) + bytes_of(last_) + bytes_of(tref_); }

 private:
  void resize(const PageBook& book) {
    fit(last_, book.end());
    fit(tref_, book.end());
  }

  // By page.
  std::vector<double> last_;
  std::vector<Step> tref_;  // of the seal
};

}  // namespace

std::unique_ptr<Scorer> make_tova() { return std::make_unique<Tova>(); }

}  // namespace memdecay::policy
