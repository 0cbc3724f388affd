// Weighted sums; see mass_window.h.
#include "adapters/reference/mass_window.h"

#include <utility>

namespace memdecay::reference {

void MassWindow::add(const PageMasses& masses) {
  const auto weight = static_cast<double>(masses.queries);
  queries_ += masses.queries;
  sink_ += weight * masses.sink;
  tail_ += weight * masses.tail;
  rest_ += weight * masses.rest;
  for (const PageMass& one : masses.listed) by_page_[one.page] += weight * one.mass;
}

PageMasses MassWindow::take(std::span<const std::byte* const> pages) {
  const MassWindow taken = std::exchange(*this, MassWindow());
  PageMasses out;
  double gone = 0.0;
  for (const auto& [page, mass] : taken.by_page_) {
    if (page >= pages.size() || pages[page] == nullptr) gone += mass;
  }
  const double kept = static_cast<double>(taken.queries_) - gone;
  if (kept <= 0.0) return out;
  out.queries = taken.queries_;
  out.sink = taken.sink_ / kept;
  out.tail = taken.tail_ / kept;
  out.rest = taken.rest_ / kept;
  for (const auto& [page, mass] : taken.by_page_) {
    if (page < pages.size() && pages[page] != nullptr) out.listed.push_back({page, mass / kept});
  }
  return out;
}

}  // namespace memdecay::reference
