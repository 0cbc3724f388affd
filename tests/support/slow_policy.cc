// Each function is the sentence of policy.md that it implements. Slow on purpose.
// Thread: a value.
#include "tests/support/slow_policy.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace memdecay::test {

void SlowPolicy::seal(int page, const std::vector<std::pair<int, int>>& runs) {
  Page fresh;
  fresh.reset = reset_now();
  fresh.last_use = ++uses_;
  for (const auto& [region, count] : runs) {
    for (int i = 0; i < count; ++i) {
      const int position = page * config_.page_tokens + static_cast<int>(fresh.tokens.size());
      fresh.tokens.push_back({region, position < config_.sinks, 0, reset_now()});
    }
  }
  pages_[page] = fresh;
}

void SlowPolicy::retag(int page, const std::vector<std::pair<int, int>>& runs) {
  size_t at = 0;
  for (const auto& [region, count] : runs) {
    for (int i = 0; i < count; ++i) pages_.at(page).tokens.at(at++).region = region;
  }
}

bool SlowPolicy::has_sink(const Page& page) const {
  return std::any_of(page.tokens.begin(), page.tokens.end(),
                     [](const Token& t) { return t.is_sink; });
}

bool SlowPolicy::region_pinned(const Page& page) const {
  if (page.soft) return false;
  return std::any_of(page.tokens.begin(), page.tokens.end(),
                     [&](const Token& t) { return config_.pinned.count(t.region) > 0; });
}

bool SlowPolicy::movable(const Page& page) const {
  return !has_sink(page) && !region_pinned(page) && !page.pinned;
}

double SlowPolicy::b_scale(const Page& page) const {
  return (page.superseded ? 1.0 / 8 : 1.0) * (page.cut ? 1.0 / 8 : 1.0);
}

double SlowPolicy::largest_b(const Page& page) const {
  double b = 0;
  for (const Token& t : page.tokens) b = std::max(b, config_.regions[size_t(t.region)].b);
  return b * b_scale(page);
}

// Of equal ones the region with the smaller number.
int SlowPolicy::lead(const Page& page) const {
  double b = 0;
  std::set<int> regions;
  for (const Token& t : page.tokens) b = std::max(b, config_.regions[size_t(t.region)].b);
  for (const Token& t : page.tokens) {
    if (config_.regions[size_t(t.region)].b == b) regions.insert(t.region);
  }
  return *regions.begin();
}

bool SlowPolicy::held(const Page& page) const {
  if (page.ended || config_.regions.empty()) return false;
  return std::any_of(page.tokens.begin(), page.tokens.end(),
                     [&](const Token& t) { return config_.regions[size_t(t.region)].held; });
}

double SlowPolicy::lost(const SlowRegion& region, const Page& page, const Reset& reset) const {
  if (held(page)) return 0;
  const double ages[] = {now_ - reset.step, turns_ - reset.turn, seconds_ - reset.second};
  const double age = ages[region.clock];
  const bool grows = std::isfinite(region.doubling);
  double lost = grows ? -std::min(age / region.doubling, 2.0) : age / (region.h * page.h_scale);
  lost += (turns_ - reset.turn) * region.turn_decay;
  if (reset.lifted && !grows && std::isfinite(region.h)) lost -= config_.boost;
  return lost;
}

SlowRegion SlowPolicy::aging(const Page& page) const {
  SlowRegion result = config_.regions[size_t(lead(page))];
  for (const Token& t : page.tokens) {
    const SlowRegion& region = config_.regions[size_t(t.region)];
    if (region.clock != result.clock) continue;
    result.h = std::max(result.h, region.h);
    result.doubling = std::min(result.doubling, region.doubling);
  }
  return result;
}

void SlowPolicy::reference(int index) {
  const int reach = config_.boost > 0 ? config_.neighbours : 0;
  for (int at = index - reach; at <= index + reach; ++at) {
    if (pages_.count(at) == 0 || !pages_[at].resident) continue;
    Reset lifted = reset_now();
    lifted.lifted = true;
    pages_[at].reset = lifted;
    for (Token& t : pages_[at].tokens) {
      if (!t.is_sink) t.reset = lifted;
    }
  }
}

void SlowPolicy::turn() {
  turns_ += 1;
  for (auto& [index, page] : pages_) {
    if (held(page)) end_group(index, index);
  }
}

void SlowPolicy::set_half_life(int region, double h) {
  const double first = first_regions_[size_t(region)].h;
  config_.regions[size_t(region)].h = std::min(std::max(h, first / 4), first * 4);
}

double SlowPolicy::oldest_tref(const Page& page) const {
  if (config_.form != "memdecay") return page.reset.step;
  double oldest = INFINITY;
  for (const Token& t : page.tokens) oldest = std::min(oldest, t.reset.step);
  return oldest;
}

int SlowPolicy::others(const Page& page) const {
  int count = 0;
  for (const Token& t : page.tokens) count += t.is_sink ? 0 : 1;
  return count;
}

double SlowPolicy::movable_tokens() const {
  double sum = 0;
  for (const auto& [index, page] : pages_) {
    if (movable(page)) sum += double(page.tokens.size());
  }
  return sum;
}

std::map<int, double> SlowPolicy::masses_of_all(const SlowObservation& seen) const {
  double unlisted_tokens = 0;
  for (const auto& [index, page] : pages_) {
    if (page.resident && seen.masses.count(index) == 0) unlisted_tokens += others(page);
  }
  std::map<int, double> masses;
  for (const auto& [index, page] : pages_) {
    if (!page.resident) continue;
    const auto listed = seen.masses.find(index);
    if (listed != seen.masses.end()) {
      masses[index] = listed->second;
    } else {
      masses[index] = unlisted_tokens > 0 ? seen.rest * others(page) / unlisted_tokens : 0;
    }
  }
  return masses;
}

void SlowPolicy::observe(const SlowObservation& seen) {
  step(seen.step);
  if (seen.queries == 0) return;
  const std::map<int, double> masses = masses_of_all(seen);
  if (config_.form == "memdecay") observe_memdecay(seen, masses);
  if (config_.form == "memdecay_n0") observe_n0(seen, masses);
  if (config_.form == "memdecay_n") observe_n(seen, masses);
  for (auto& [index, page] : pages_) {
    page.observed = page.observed || page.resident;
    if (!page.resident) continue;
    page.attention[queries_.size()] = float(attention(page, seen, masses.at(index)));
    page.received += double(seen.queries) * attention(page, seen, masses.at(index));
    page.queries += double(seen.queries);
    page.last = attention(page, seen, masses.at(index));
  }
  queries_.push_back(double(seen.queries));
  for (auto& [index, page] : pages_) page.last_window = window_score(page);
}

void SlowPolicy::observe_memdecay(const SlowObservation& seen, const std::map<int, double>& mass) {
  double cached = 0, sinks = 0;
  for (const auto& [index, page] : pages_) {
    if (!page.resident) continue;
    cached += double(page.tokens.size());
    sinks += double(page.tokens.size()) - others(page);
  }
  std::set<int> referenced;
  for (auto& [index, page] : pages_) {
    if (!page.resident) continue;
    for (Token& t : page.tokens) {
      const double A = t.is_sink ? seen.sink / sinks : mass.at(index) / others(page);
      t.a = 0.9 * t.a + 0.1 * A;
      if (!reaches(A, 2 / cached)) continue;
      if (t.is_sink) t.reset = reset_now();
      if (!t.is_sink) referenced.insert(index);
    }
  }
  for (const int index : referenced) reference(index);
}

bool SlowPolicy::reaches(double value, double threshold) {
  if (std::abs(value - threshold) < 1e-12 * threshold) hangs_on_rounding_ = true;
  return value >= threshold;
}

void SlowPolicy::refresh(std::vector<std::pair<double, int>> candidates, double most) {
  std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return std::make_tuple(-a.first, a.second) < std::make_tuple(-b.first, b.second);
  });
  for (size_t i = 1; i < candidates.size(); ++i)
    reaches(candidates[i].first, candidates[i - 1].first);
  if (double(candidates.size()) > most) candidates.resize(size_t(most));
  for (const auto& [u, index] : candidates) reference(index);
}

void SlowPolicy::observe_n0(const SlowObservation& seen, const std::map<int, double>& mass) {
  const double g = std::exp2(-1.0 / 256);
  const double left = 1 - seen.sink - seen.tail;
  double cached = 0;
  int resident_pages = 0;
  for (const auto& [index, page] : pages_) {
    if (!page.resident) continue;
    cached += double(page.tokens.size());
    ++resident_pages;
  }
  std::vector<std::pair<double, int>> candidates;
  for (auto& [index, page] : pages_) {
    if (!page.resident) continue;
    page.E *= g;
    page.X = page.X * g + 1;
    if (left < 1e-6 || others(page) == 0) continue;
    const double u = mass.at(index) / others(page) * std::max(cached - config_.sinks, 0.0) / left;
    page.E += u;
    if (seen.masses.count(index) > 0 && reaches(u, 1)) candidates.push_back({u, index});
  }
  refresh(candidates, std::ceil(resident_pages / 10.0));
}

double SlowPolicy::expected(int index, const SlowObservation& seen) const {
  const auto last = [&](int page) {
    return double(page) * config_.page_tokens + double(pages_.at(page).tokens.size()) - 1;
  };
  const double query = seen.position != 0 ? double(seen.position) : last(end() - 1) + 1;
  const double middle = query - std::floor(double(seen.queries - 1) / 2);
  return expected_at(lead(pages_.at(index)), middle - last(index));
}

double SlowPolicy::expected_at(int region, double distance) const {
  const auto own = config_.given_to.find(region);
  if (own != config_.given_to.end() || config_.expected == "given") {
    const std::vector<double>& table = own != config_.given_to.end() ? own->second : config_.given;
    size_t doubling = 0;
    while (doubling + 1 < table.size() && distance >= std::exp2(double(doubling) + 1)) ++doubling;
    return table[doubling];
  }
  if (config_.expected == "one") return 1;
  if (config_.expected == "shipped_heads") {
    for (const auto& [below, lift] : std::vector<std::pair<double, double>>{
             {32, 3.92}, {64, 2.8}, {128, 2.44}, {256, 1.99}, {512, 1.22}, {1024, 0.628}}) {
      if (distance < below) return lift;
    }
    return 0.465;
  }
  for (const auto& [below, lift] : std::vector<std::pair<double, double>>{
           {32, 7.57}, {64, 4.48}, {128, 3.05}, {256, 1.86}, {512, 0.943}, {1024, 0.488}}) {
    if (distance < below) return lift;
  }
  return 0.304;
}

void SlowPolicy::observe_n(const SlowObservation& seen, const std::map<int, double>& mass) {
  double A = 0, phi = 0, Z = 0;
  int movable_pages = 0;
  const double N = movable_tokens();
  for (const auto& [index, page] : pages_) {
    if (!movable(page)) continue;
    Z += double(page.tokens.size()) * expected(index, seen) / N;
    if (page.resident) {
      A += mass.at(index);
      ++movable_pages;
    } else {
      phi += page.share;
    }
  }
  if (!reaches(A, std::exp2(-8))) return;
  phi = std::min(phi, 15.0 / 16);
  const bool prefill = now_ == last_observed_;
  const double w = double(std::min<int64_t>(seen.queries, prefill ? 1 : 32));
  const double g = std::exp2(-(now_ - last_observed_) / config_.G);
  last_observed_ = now_;
  double cached = 0;
  for (const auto& [index, page] : pages_) {
    if (page.resident) cached += double(page.tokens.size());
  }
  std::vector<std::pair<double, int>> candidates;
  for (auto& [index, page] : pages_) {
    if (!page.resident) continue;
    const double A_i = others(page) == 0 ? 0 : mass.at(index) / others(page);
    const double x = expected(index, seen) / Z;
    page.u = A_i * N * (1 - phi) / A;
    page.E = g * page.E + w * page.u;
    page.X = g * page.X + w * x;
    page.K = std::max(page.K * g, prefill ? 1 : page.u / x);
    if (config_.refresh == "none") continue;
    if (config_.refresh == "uniform") {
      if (others(page) > 0 && reaches(A_i, config_.tau / cached)) reference(index);
      continue;
    }
    const double ratio = config_.refresh == "expected" ? page.u / x : page.u;
    if (movable(page) && seen.masses.count(index) > 0 && reaches(ratio, config_.refresh_lift)) {
      candidates.push_back({ratio, index});
    }
  }
  refresh(candidates, std::ceil(movable_pages * config_.refresh_fraction - 1e-9));
}

void SlowPolicy::evict(int index) {
  Page& page = pages_.at(index);
  page.resident = false;
  page.share = movable(page) ? double(page.tokens.size()) * page.u / movable_tokens() : 0;
}

void SlowPolicy::restore(int index) {
  pages_.at(index).resident = true;
  pages_.at(index).last_use = ++uses_;
  ++pages_.at(index).draws;
}

void SlowPolicy::truncate(int first) { pages_.erase(pages_.lower_bound(first), pages_.end()); }

void SlowPolicy::end_group(int first, int last) {
  for (int index = first; index <= last; ++index) {
    if (pages_.count(index) == 0) continue;
    pages_[index].ended = true;
    pages_[index].reset = reset_now();
    for (Token& t : pages_[index].tokens) t.reset = reset_now();
  }
}

void SlowPolicy::end_group_and_cut(int first, int last) {
  end_group(first, last);
  for (auto& [index, page] : pages_) page.cut = page.cut || (index >= first && index <= last);
}

void SlowPolicy::hint(int page, double relevance) {
  pages_.at(page).h_scale = std::exp2(4 * relevance - 2);
}

void SlowPolicy::supersede(int page) { pages_.at(page).superseded = true; }

double SlowPolicy::score(int index) const {
  const Page& page = pages_.at(index);
  if (config_.form.rfind("memdecay", 0) != 0) return baseline_score(index, page);
  if (config_.form == "memdecay") {
    double sum = 0;
    for (const Token& t : page.tokens) {
      const SlowRegion& region = config_.regions[size_t(t.region)];
      const double left = std::exp(-std::log(2.0) * lost(region, page, t.reset));
      sum += region.b * b_scale(page) * left + 0.5 * t.a;
    }
    return sum / double(page.tokens.size());
  }
  const double log_b = std::log2(largest_b(page));
  const double age = lost(aging(page), page, page.reset);
  const double k0 = config_.form == "memdecay_n0" ? 2 : config_.k0;
  const double evidence = std::clamp(std::log2((page.E + k0) / (page.X + k0)), -2.0, 4.0);
  if (config_.form == "memdecay_n0") return log_b - age + 2 * evidence;
  const double peak = std::clamp(std::log2(page.K), 0.0, 6.0);
  return log_b - std::min(age, config_.D) + config_.beta * evidence + config_.gamma * peak;
}

std::vector<int> SlowPolicy::sealed_pages() const {
  std::vector<int> result;
  for (const auto& [index, page] : pages_) result.push_back(index);
  return result;
}

std::vector<SlowVictim> SlowPolicy::order() const {
  static const std::set<std::string> kGrace = {"memdecay_n", "memdecay_n0", "h2o",
                                               "norm_sum",   "tova",        "snapkv"};
  const bool has_grace = kGrace.count(config_.form) > 0;
  std::vector<std::tuple<bool, int, double, double, int>> all;
  for (const auto& [index, page] : pages_) {
    if (!page.resident || !movable(page) || end() - index <= config_.recent) continue;
    const bool gives = std::all_of(page.tokens.begin(), page.tokens.end(), [&](const Token& t) {
      return config_.valve_regions.count(t.region) > 0;
    });
    const int stage = score(index) < config_.valve_score ? 0 : gives ? 1 : 2;
    const double first = stage == 1 ? index : score(index);
    all.push_back({has_grace && !page.observed, stage, first, oldest_tref(page), index});
  }
  std::sort(all.begin(), all.end());
  std::vector<SlowVictim> result;
  for (const auto& [grace, stage, first, tref, index] : all)
    result.push_back({index, score(index)});
  return result;
}

}  // namespace memdecay::test
