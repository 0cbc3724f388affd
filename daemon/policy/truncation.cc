// `truncation`: a baseline, what a context window without any policy does. The oldest position goes
// first; the score is the page's number. It has no sinks (registry.cc takes them away), which is
// what sets it apart from `streaming`: the first tokens, on which attention leans, are lost first.
// Position never changes, so nothing that happens to a page moves it. Thread: the owning Policy's.
#include "daemon/policy/kept_score.h"

namespace memdecay::policy {
namespace {

class Truncation final : public SealOrder {
 public:
  std::unique_ptr<Scorer> clone() const override { return std::make_unique<Truncation>(*this); }
  Grace grace() const override { return Grace::kNone; }
  Moves moves() const override { return Moves::kNever; }

  double score(const PageBook&, PageIndex page) const override { return page; }
  void scores(const PageBook&, PageIndex first, absl::Span<double> out) const override {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(first + i);
  }
  std::vector<Term> explain(const PageBook&, PageIndex page) const override {
    return {{.name = "position", .value = static_cast<double>(page)}};
  }
  size_t bytes() const override { return sizeof(Truncation) + column_bytes(); }
};

}  // namespace

std::unique_ptr<Scorer> make_truncation() { return std::make_unique<Truncation>(); }

}  // namespace memdecay::policy
