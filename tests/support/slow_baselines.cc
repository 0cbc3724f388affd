// The baselines' scores in the slow reference (slow_policy.h): each function is the sentence that
// it implements. Thread: a value.
#include <algorithm>

#include "tests/support/slow_policy.h"

namespace memdecay::test {

double SlowPolicy::resident_sinks() const {
  double sinks = 0;
  for (const auto& [index, page] : pages_) {
    if (page.resident) sinks += double(page.tokens.size()) - others(page);
  }
  return sinks;
}

double SlowPolicy::attention(const Page& page, const SlowObservation& seen, double mass) const {
  const double sinks = double(page.tokens.size()) - others(page);
  double sum = others(page) > 0 ? mass : 0;
  if (sinks > 0) sum += seen.sink * sinks / resident_sinks();
  return sum / double(page.tokens.size());
}

// Newest observation first, until the window is full.
double SlowPolicy::window_score(const Page& page) const {
  double left = config_.window, sum = 0, weight = 0;
  for (size_t i = queries_.size(); i-- > 0 && left > 0;) {
    const double counted = std::min(left, queries_[i]);
    left -= counted;
    if (page.attention.count(i) == 0) continue;
    sum += counted * double(page.attention.at(i));
    weight += counted;
  }
  return weight > 0 && page.resident ? sum / weight : page.last_window;
}

double SlowPolicy::draw(int index, const Page& page) const {
  uint64_t x = (uint64_t(index) * 4294967296u + uint64_t(page.draws) + 1) * 0x9E3779B97F4A7C15u;
  x += config_.seed;
  x = (x ^ x / 1073741824u) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x / 134217728u) * 0x94D049BB133111EBu;
  x ^= x / 2147483648u;
  return double(x / 2048) / 9007199254740992.0;
}

double SlowPolicy::baseline_score(int index, const Page& page) const {
  const std::string& form = config_.form;
  if (form == "lru") return page.last_use;
  if (form == "random") return draw(index, page);
  if (form == "truncation") return index;
  if (form == "streaming") return has_sink(page) ? 4294967296.0 + index : index;
  if (form == "h2o") return page.received;
  if (form == "norm_sum") return page.queries > 0 ? page.received / page.queries : 0;
  if (form == "tova") return page.last;
  return page.last_window;  // snapkv
}

}  // namespace memdecay::test
