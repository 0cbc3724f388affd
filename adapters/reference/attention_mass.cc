// Sums of attention weights by page; see attention_mass.h for the order of additions.
#include "adapters/reference/attention_mass.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"

namespace memdecay::reference {
namespace {

HeadChoice heads_from(size_t first_layer, size_t layers, size_t heads) {
  HeadChoice out;
  for (size_t layer = first_layer; layer < layers; ++layer) {
    for (size_t head = 0; head < heads; ++head) out.push_back({layer, head});
  }
  return out;
}

bool read_number(const std::string& text, size_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

absl::StatusOr<HeadChoice> parse_heads(const std::string& text, size_t layers, size_t heads) {
  if (text == "all") return HeadChoice{};
  if (text == "late") return heads_from(layers - layers / 3, layers, heads);
  std::set<LayerHead> chosen;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const std::vector<std::string> pair = absl::StrSplit(part, ':');
    LayerHead one;
    if (pair.size() != 2 || !read_number(pair[0], one.layer) || !read_number(pair[1], one.head) ||
        one.layer >= layers || one.head >= heads) {
      return make_error(ErrorCode::kInvalidArgument, absl::StrCat("heads '", text, "'"),
                        absl::StrCat("the model has ", layers, " layers of ", heads, " heads"),
                        "write all, late or LAYER:HEAD pairs like 12:3,20:0");
    }
    chosen.insert(one);
  }
  return HeadChoice(chosen.begin(), chosen.end());
}

MassCollector::MassCollector(const MassRequest& request, const Call& call)
    : request_(request),
      pages_(call.pages.begin(), call.pages.end()),
      page_tokens_(call.page_tokens),
      first_position_(call.first_position),
      heads_(call.heads),
      slot_(call.layers * call.heads, -1) {
  for (const HeadChoice& choice : request_.choices) {
    for (const LayerHead& one : choice) slot_[one.layer * heads_ + one.head] = 0;
    if (choice.empty()) std::fill(slot_.begin(), slot_.end(), 0);
  }
  for (size_t i = 0; i < slot_.size(); ++i) {
    if (slot_[i] < 0) continue;
    slot_[i] = static_cast<int32_t>(wanted_.size());
    wanted_.push_back({i / heads_, i % heads_});
  }
  const size_t asking = request_.last_queries == 0 ? call.queries : request_.last_queries;
  first_asking_ = call.queries - std::min(asking, call.queries);
  const size_t each = request_.group_queries;
  group_queries_.assign(each == 0 ? 1 : (call.queries + each - 1) / each, 0);
  totals_.assign(group_queries_.size() * wanted_.size() * (pages_.size() + 1), 0.0);
}

size_t MassCollector::group_of(size_t query) const {
  return request_.group_queries == 0 ? 0 : query / request_.group_queries;
}

void MassCollector::begin_chunk(size_t queries) {
  chunk_queries_ = queries;
  rows_.assign(queries * heads_ * (pages_.size() + 1), 0.0);
  for (size_t query = seen_queries_; query < seen_queries_ + queries; ++query) {
    if (query >= first_asking_) ++group_queries_[group_of(query)];
  }
}

void MassCollector::add(size_t row, std::span<const float> weights) {
  double* sums = rows_.data() + row * (pages_.size() + 1);
  double sinks_mass = 0.0;
  for (size_t p = 0; p * page_tokens_ < weights.size(); ++p) {
    const size_t position = size_t{pages_[p]} * page_tokens_;
    const size_t sinks = position < request_.sinks ? request_.sinks - position : 0;
    const std::span<const float> page = weights.subspan(p * page_tokens_, page_tokens_);
    float mass = 0.0f;
    float sink = 0.0f;
    for (size_t t = 0; t < page_tokens_; ++t) (t < sinks ? sink : mass) += page[t];
    sums[p] = double{mass};
    sinks_mass += double{sink};
  }
  sums[pages_.size()] = sinks_mass;
}

void MassCollector::end_layer(size_t layer) {
  const size_t columns = pages_.size() + 1;
  for (size_t query = 0; query < chunk_queries_; ++query) {
    if (seen_queries_ + query < first_asking_) continue;
    const size_t group = group_of(seen_queries_ + query);
    for (size_t head = 0; head < heads_; ++head) {
      const int32_t slot = slot_[layer * heads_ + head];
      if (slot < 0) continue;
      const double* row = rows_.data() + (query * heads_ + head) * columns;
      double* total =
          totals_.data() + (group * wanted_.size() + static_cast<size_t>(slot)) * columns;
      for (size_t c = 0; c < columns; ++c) total[c] += row[c];
    }
  }
}

std::vector<PageMasses> MassCollector::results() const {
  std::vector<PageMasses> out;
  for (size_t group = 0; group < group_queries_.size(); ++group) {
    for (const HeadChoice& choice : request_.choices) out.push_back(result(group, choice));
  }
  return out;
}

PageMasses MassCollector::result(size_t group, const HeadChoice& choice) const {
  PageMasses out;
  out.queries = group_queries_[group];
  const HeadChoice& heads = choice.empty() ? wanted_ : choice;
  if (out.queries * heads.size() == 0) return out;
  const size_t columns = pages_.size() + 1;
  std::vector<double> sums(columns, 0.0);
  for (const LayerHead& one : heads) {
    const auto slot = static_cast<size_t>(slot_[one.layer * heads_ + one.head]);
    const double* total = totals_.data() + (group * wanted_.size() + slot) * columns;
    for (size_t c = 0; c < columns; ++c) sums[c] += total[c];
  }
  const double scale = 1.0 / static_cast<double>(out.queries * heads.size());
  const size_t first_query = first_position_ + group * request_.group_queries;
  const size_t sealed = group == 0 ? request_.sealed_pages
                                   : std::max(request_.sealed_pages, first_query / page_tokens_);
  out.sink = sums.back() * scale;
  for (size_t p = 0; p < pages_.size(); ++p) {
    const double mass = sums[p] * scale;
    if (pages_[p] < sealed) {
      out.listed.push_back({pages_[p], mass});
    } else {
      out.tail += mass;
    }
  }
  keep_heaviest(out);
  return out;
}

void MassCollector::keep_heaviest(PageMasses& masses) const {
  std::vector<PageMass>& listed = masses.listed;
  if (request_.max_listed == 0 || listed.size() <= request_.max_listed) return;
  const auto heavier = [](const PageMass& a, const PageMass& b) {
    return a.mass != b.mass ? a.mass > b.mass : a.page < b.page;
  };
  const auto by_page = [](const PageMass& a, const PageMass& b) { return a.page < b.page; };
  std::sort(listed.begin(), listed.end(), heavier);
  const auto cut = listed.begin() + static_cast<std::ptrdiff_t>(request_.max_listed);
  std::sort(cut, listed.end(), by_page);
  for (auto left_out = cut; left_out != listed.end(); ++left_out) masses.rest += left_out->mass;
  listed.erase(cut, listed.end());
  std::sort(listed.begin(), listed.end(), by_page);
}

}  // namespace memdecay::reference
