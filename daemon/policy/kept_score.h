// What the baselines share, so that each of their files holds its formula alone: the step of a
// page's seal, which breaks ties, and a score that is written down when it changes.
// Thread: the owning Policy's. Not here: the log-linear and the paper's form, which compute.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "daemon/policy/columns.h"
#include "daemon/policy/scorer.h"

namespace memdecay::policy {

// Ties go by the seal. A form with columns of its own fits them beside this one's.
class SealOrder : public Scorer {
 public:
  void on_seal(const PageBook& book, PageIndex page) override {
    fit_columns(book.end());
    tref_[page] = book.now();
  }
  void on_truncate(const PageBook& book) override { fit_columns(book.end()); }
  Step tref(const PageBook&, PageIndex page) const override { return tref_[page]; }

 protected:
  virtual void fit_columns(size_t pages) { fit(tref_, pages); }
  // Without the object itself.
  virtual size_t column_bytes() const { return bytes_of(tref_); }

 private:
  std::vector<Step> tref_;  // by page
};

// The score is a column, 0 from the seal on.
class KeptScore : public SealOrder {
 public:
  void on_seal(const PageBook& book, PageIndex page) override {
    SealOrder::on_seal(book, page);
    score_[page] = 0.0;
  }
  double score(const PageBook&, PageIndex page) const override { return score_[page]; }
  void scores(const PageBook&, PageIndex first, absl::Span<double> out) const override {
    std::copy_n(score_.begin() + first, out.size(), out.begin());
  }

 protected:
  void fit_columns(size_t pages) override {
    SealOrder::fit_columns(pages);
    fit(score_, pages);
  }
  size_t column_bytes() const override { return SealOrder::column_bytes() + bytes_of(score_); }

  std::vector<double> score_;  // by page
};

}  // namespace memdecay::policy
