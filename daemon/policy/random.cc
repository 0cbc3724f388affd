// `random`: a baseline. Every page draws a number when it is sealed and again when it comes back;
// the lowest goes first. So what stays at any time is a uniform sample of the pages, whatever their
// age: the chance level that every other policy has to beat.
//
// The draw is a hash (the finalizer of SplitMix64: Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014) of the seed, the page and how often it has drawn:
// the same history gives the same order everywhere. Hints, groups and attention do not matter.
// Thread: the owning Policy's.
#include "daemon/policy/columns.h"
#include "daemon/policy/scorer.h"

namespace memdecay::policy {
namespace {

// Uniform in [0, 1), of 53 bits.
double draw(uint64_t seed, PageIndex page, uint32_t draws) {
  uint64_t x = seed + 0x9E3779B97F4A7C15u * ((uint64_t{page} << 32 | draws) + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1p-53;
}

class Random final : public Scorer {
 public:
  explicit Random(const PolicyOptions& options)
      : seed_(static_cast<uint64_t>(options.seed.value_or(0.0))) {}

  std::unique_ptr<Scorer> clone() const override { return std::make_unique<Random>(*this); }
  Grace grace() const override { return Grace::kNone; }
  Moves moves() const override { return Moves::kNever; }

  void on_seal(const PageBook& book, PageIndex page) override {
    resize(book);
    draws_[page] = 0;
    tref_[page] = book.now();
    score_[page] = draw(seed_, page, 0);
  }
  void on_restored(const PageBook&, PageIndex page) override {
    score_[page] = draw(seed_, page, ++draws_[page]);
  }
  void on_truncate(const PageBook& book) override { resize(book); }

  double score(const PageBook&, PageIndex page) const override { return score_[page]; }
  void scores(const PageBook&, PageIndex first, absl::Span<double> out) const override {
    std::copy_n(score_.begin() + first, out.size(), out.begin());
  }
  Step tref(const PageBook&, PageIndex page) const override { return tref_[page]; }
  std::vector<Term> explain(const PageBook&, PageIndex page) const override {
    return {{.name = "draw", .value = score_[page]}};
  }
  size_t bytes() const override {
    return sizeof(Random) + bytes_of(score_) + bytes_of(tref_) + bytes_of(draws_);
  }

 private:
  void resize(const PageBook& book) {
    fit(score_, book.end());
    fit(tref_, book.end());
    fit(draws_, book.end());
  }

  uint64_t seed_;
  // By page.
  std::vector<double> score_;
  std::vector<Step> tref_;  // of the seal
  std::vector<uint32_t> draws_;
};

}  // namespace

std::unique_ptr<Scorer> make_random(const PolicyOptions& options) {
  return std::make_unique<Random>(options);
}

}  // namespace memdecay::policy
