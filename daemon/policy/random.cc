// `random`: a baseline. Every page draws a number when it is sealed and again when it comes back;
// the lowest goes first. So what stays at any time is a uniform sample of the pages, whatever their
// age: the chance level that every other policy has to beat.
//
// The draw is a hash (SplitMix64, daemon/base/random.h) of the seed, the page and how often it has
// drawn: the same history gives the same order everywhere. Hints, groups and attention do not
// matter. Thread: the owning Policy's.
#include "daemon/base/random.h"

#include "daemon/policy/kept_score.h"

namespace memdecay::policy {
namespace {

// SplitMix64's own stride: draw n is what a generator with this seed gives as its number n.
constexpr uint64_t kStride = 0x9e3779b97f4a7c15u;

// Uniform in [0, 1), of 53 bits.
double draw(uint64_t seed, PageIndex page, uint32_t draws) {
  return base::Random(seed + kStride * (uint64_t{page} << 32 | draws)).unit();
}

class Random final : public KeptScore {
 public:
  explicit Random(const PolicyOptions& options)
      : seed_(static_cast<uint64_t>(options.seed.value_or(0.0))) {}

  std::unique_ptr<Scorer> clone() const override { return std::make_unique<Random>(*this); }
  Grace grace() const override { return Grace::kNone; }
  Moves moves() const override { return Moves::kNever; }

  void on_seal(const PageBook& book, PageIndex page) override {
    KeptScore::on_seal(book, page);
    draws_[page] = 0;
    score_[page] = draw(seed_, page, 0);
  }
  void on_restored(const PageBook&, PageIndex page) override {
    score_[page] = draw(seed_, page, ++draws_[page]);
  }
  std::vector<Term> explain(const PageBook&, PageIndex page) const override {
    return {{.name = "draw", .value = score_[page]}};
  }
  size_t bytes() const override { return sizeof(Random) + column_bytes() + bytes_of(draws_); }

 private:
  void fit_columns(size_t pages) override {
    KeptScore::fit_columns(pages);
    fit(draws_, pages);
  }

  uint64_t seed_;
  std::vector<uint32_t> draws_;  // by page
};

}  // namespace

std::unique_ptr<Scorer> make_random(const PolicyOptions& options) {
  return std::make_unique<Random>(options);
}

}  // namespace memdecay::policy
