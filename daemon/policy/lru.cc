// `lru`: what was used longest ago goes first. A use is a seal (the page was written) or a restore
// (somebody wanted it back). Attention is no use: every resident page receives some at every step,
// so it would only re-number the pages. Hints, groups and regions do not matter here, pins do.
// Thread: the owning Policy's. The score is the number of the use, so no two are equal.
#include "daemon/policy/columns.h"
#include "daemon/policy/scorer.h"

namespace memdecay::policy {
namespace {

class Lru final : public Scorer {
 public:
  std::unique_ptr<Scorer> clone() const override { return std::make_unique<Lru>(*this); }
  Grace grace() const override { return Grace::kNone; }
  Moves moves() const override { return Moves::kNever; }

  void on_seal(const PageBook& book, PageIndex page) override {
    fit(uses_, book.end());
    touch(book, page);
  }
  void on_restored(const PageBook& book, PageIndex page) override { touch(book, page); }
  void on_truncate(const PageBook& book) override { fit(uses_, book.end()); }

  double score(const PageBook&, PageIndex page) const override {
    return static_cast<double>(uses_[page].number);
  }
  void scores(const PageBook&, PageIndex first, absl::Span<double> out) const override {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(uses_[first + i].number);
  }
  Step tref(const PageBook&, PageIndex page) const override { return uses_[page].step; }
  std::vector<Term> explain(const PageBook& book, PageIndex page) const override {
    return {{.name = "last_use", .value = score(book, page)}};
  }
  size_t bytes() const override { return sizeof(Lru) + uses_.capacity() * sizeof(Use); }

 private:
  struct Use {
    uint64_t number = 0;
    Step step = 0;
  };

  void touch(const PageBook& book, PageIndex page) {
    uses_[page] = {.number = ++last_number_, .step = book.now()};
  }

  std::vector<Use> uses_;
  uint64_t last_number_ = 0;
};

}  // namespace

std::unique_ptr<Scorer> make_lru() { return std::make_unique<Lru>(); }

}  // namespace memdecay::policy
