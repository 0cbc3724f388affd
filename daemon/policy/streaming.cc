// `streaming`: attention sinks and a window of recent tokens (StreamingLLM: Xiao, Tian, Chen, Han
// and Lewis, arXiv 2309.17453, section 3.2). Between the sinks and the window the oldest position
// goes first; how wide the window is follows from the budget. Pages with sinks are protected while
// the session runs, and when it does not they are the last to go.
// Thread: the owning Policy's. The score is the page's number, no two are equal.
#include "daemon/policy/kept_score.h"

namespace memdecay::policy {
namespace {

constexpr double kSinksLast = 0x1p32;  // above every page number

class Streaming final : public SealOrder {
 public:
  std::unique_ptr<Scorer> clone() const override { return std::make_unique<Streaming>(*this); }
  Grace grace() const override { return Grace::kNone; }
  Moves moves() const override { return Moves::kNever; }

  double score(const PageBook& book, PageIndex page) const override {
    return static_cast<double>(page) + (book.holds_sinks(page) ? kSinksLast : 0.0);
  }
  void scores(const PageBook& book, PageIndex first, absl::Span<double> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = score(book, first + static_cast<PageIndex>(i));
    }
  }
  std::vector<Term> explain(const PageBook& book, PageIndex page) const override {
    std::vector<Term> terms = {{.name = "position", .value = static_cast<double>(page)}};
    if (book.holds_sinks(page)) terms.push_back({.name = "sink", .value = kSinksLast});
    return terms;
  }
  size_t bytes() const override { return sizeof(Streaming) + column_bytes(); }
};

}  // namespace

std::unique_ptr<Scorer> make_streaming() { return std::make_unique<Streaming>(); }

}  // namespace memdecay::policy
