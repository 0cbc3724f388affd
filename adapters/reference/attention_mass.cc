// Sums of attention weights by page; see attention_mass.h for the order of additions.
#include "adapters/reference/attention_mass.h"

#include <algorithm>

namespace memdecay::reference {
namespace {

std::vector<char> wanted(std::span<const size_t> chosen, size_t count) {
  std::vector<char> flags(count, chosen.empty() ? 1 : 0);
  for (const size_t index : chosen) flags[index] = 1;
  return flags;
}

size_t number_wanted(const std::vector<char>& flags) {
  return static_cast<size_t>(std::count(flags.begin(), flags.end(), 1));
}

}  // namespace

MassCollector::MassCollector(const MassRequest& request, std::span<const PageIndex> pages,
                             size_t page_tokens, size_t layers, size_t heads)
    : request_(request),
      pages_(pages.begin(), pages.end()),
      page_tokens_(page_tokens),
      heads_(heads),
      layer_wanted_(wanted(request.layers, layers)),
      head_wanted_(wanted(request.heads, heads)),
      totals_(pages.size() + 1, 0.0) {
  wanted_layers_ = number_wanted(layer_wanted_);
  wanted_heads_ = number_wanted(head_wanted_);
}

void MassCollector::begin_chunk(size_t queries) {
  rows_.assign(queries * heads_ * totals_.size(), 0.0);
}

void MassCollector::add(size_t row, std::span<const float> weights) {
  double* sums = rows_.data() + row * totals_.size();
  for (size_t p = 0; p * page_tokens_ < weights.size(); ++p) {
    const size_t position = size_t{pages_[p]} * page_tokens_;
    const size_t sinks = position < request_.sinks ? request_.sinks - position : 0;
    const std::span<const float> page = weights.subspan(p * page_tokens_, page_tokens_);
    float mass = 0.0f;
    float sink = 0.0f;
    for (size_t t = 0; t < page_tokens_; ++t) (t < sinks ? sink : mass) += page[t];
    sums[p] += double{mass};
    sums[pages_.size()] += double{sink};
  }
}

void MassCollector::end_chunk(size_t first) {
  const size_t columns = totals_.size();
  const size_t rows = rows_.size() / columns;
  for (size_t row = first * heads_; row < rows; ++row) {
    for (size_t c = 0; c < columns; ++c) totals_[c] += rows_[row * columns + c];
  }
  queries_ += rows / heads_ - std::min(first, rows / heads_);
}

PageMasses MassCollector::result() const {
  PageMasses out;
  out.queries = queries_;
  const size_t count = queries_ * wanted_layers_ * wanted_heads_;
  if (count == 0) return out;
  const double scale = 1.0 / static_cast<double>(count);
  out.sink = totals_.back() * scale;
  for (size_t p = 0; p < pages_.size(); ++p) {
    const double mass = totals_[p] * scale;
    if (pages_[p] < request_.sealed_pages) {
      out.listed.push_back({pages_[p], mass});
    } else {
      out.tail += mass;
    }
  }
  if (request_.max_listed == 0 || out.listed.size() <= request_.max_listed) return out;
  const auto heavier = [](const PageMass& a, const PageMass& b) {
    return a.mass != b.mass ? a.mass > b.mass : a.page < b.page;
  };
  const auto by_page = [](const PageMass& a, const PageMass& b) { return a.page < b.page; };
  std::sort(out.listed.begin(), out.listed.end(), heavier);
  const auto cut = out.listed.begin() + static_cast<std::ptrdiff_t>(request_.max_listed);
  std::sort(cut, out.listed.end(), by_page);
  for (auto left_out = cut; left_out != out.listed.end(); ++left_out) out.rest += left_out->mass;
  out.listed.erase(cut, out.listed.end());
  std::sort(out.listed.begin(), out.listed.end(), by_page);
  return out;
}

}  // namespace memdecay::reference
