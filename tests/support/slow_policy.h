// The formulas of the policies once more, as obvious and slow as they can be: token by token, from
// the definitions, with libm. It shares no header with the product, so that an error would have to
// be made twice.
// Thread: a value. Not here: the random histories (test_random_histories.cc).
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace memdecay::test {

struct SlowRegion {
  double b = 1;
  double h = 1;
  int clock = 0;  // 0 tokens, 1 turns, 2 seconds
  double doubling = INFINITY;
  double turn_decay = 0;
  bool held = false;
};

struct SlowConfig {
  std::string form;  // a name that the product knows, without +pin
  std::vector<SlowRegion> regions;
  std::set<int> pinned;
  int page_tokens = 16;
  int sinks = 4;
  int recent = 2;
  double window = 32;  // snapkv
  uint64_t seed = 0;   // random
  double boost = 0;
  int neighbours = 1;
  double valve_score = INFINITY;
  std::set<int> valve_regions;
  // memdecay_n
  double beta = 1, gamma = 1, D = 4, G = 4096, k0 = 2;
  std::string refresh = "none";  // lift, expected, uniform
  double refresh_lift = 4, refresh_fraction = 0.1, tau = 2;
  std::string expected = "shipped";             // one, shipped_heads, given
  std::vector<double> given;                    // of distances [1, 2), [2, 4), …; the last beyond
  std::map<int, std::vector<double>> given_to;  // a region's own
};

struct SlowObservation {
  double step = 0, sink = 0, tail = 0, rest = 0;
  int64_t position = 0;
  int64_t queries = 1;
  std::map<int, double> masses;
};

struct SlowVictim {
  int page = 0;
  double score = 0;
};

class SlowPolicy {
 public:
  explicit SlowPolicy(SlowConfig config)
      : config_(std::move(config)), first_regions_(config_.regions) {}

  void step(double to) { now_ = to > now_ ? to : now_; }
  void seconds(double to) { seconds_ = to > seconds_ ? to : seconds_; }
  void turn();
  void set_half_life(int region, double h);
  void seal(int page, const std::vector<std::pair<int, int>>& runs);
  void retag(int page, const std::vector<std::pair<int, int>>& runs);
  void observe(const SlowObservation& seen);
  void evict(int page);
  void restore(int page);
  void truncate(int first);
  void end_group(int first, int last);
  void end_group_and_cut(int first, int last);
  void hint(int page, double relevance);
  void supersede(int page);
  void pin(int page) { pages_.at(page).pinned = true; }
  void unpin(int page) { pages_.at(page).pinned = false; }
  void soften(int page) { pages_.at(page).soft = true; }
  void harden(int page) { pages_.at(page).soft = false; }

  double score(int page) const;
  // All that may go, in order.
  std::vector<SlowVictim> order() const;
  bool resident(int page) const { return pages_.at(page).resident; }
  std::vector<int> sealed_pages() const;
  // A comparison hung on rounding: from here on two right implementations may differ.
  bool hangs_on_rounding() const { return hangs_on_rounding_; }
  int end() const { return pages_.empty() ? 0 : pages_.rbegin()->first + 1; }

 private:
  // When the clock was reset, by each clock, and whether by attention.
  struct Reset {
    double step = 0, turn = 0, second = 0;
    bool lifted = false;
  };
  struct Token {
    int region = 0;
    bool is_sink = false;
    double a = 0;
    Reset reset;
  };
  struct Page {
    std::vector<Token> tokens;
    bool resident = true, observed = false, pinned = false, soft = false;
    bool superseded = false, cut = false, ended = false;
    double h_scale = 1;
    Reset reset;
    double E = 0, X = 0, K = 1, u = 1, share = 0;
    double last_use = 0;
    std::map<size_t, float> attention;  // by number of the observation
    double draws = 0, received = 0, queries = 0, last = 0, last_window = 0;
  };

  bool has_sink(const Page& page) const;
  bool region_pinned(const Page& page) const;
  bool movable(const Page& page) const;
  double b_scale(const Page& page) const;
  double largest_b(const Page& page) const;
  int lead(const Page& page) const;  // the region that the largest b is from
  Reset reset_now() const { return {now_, turns_, seconds_, false}; }
  bool held(const Page& page) const;
  // Half-lives lost by what ages as the region says.
  double lost(const SlowRegion& region, const Page& page, const Reset& reset) const;
  // As which the page ages in the log-linear forms.
  SlowRegion aging(const Page& page) const;
  // The page and those that rise with it.
  void reference(int index);
  double oldest_tref(const Page& page) const;
  int others(const Page& page) const;
  double movable_tokens() const;
  double expected(int index, const SlowObservation& seen) const;
  double expected_at(int region, double distance) const;
  // Mass of each page's non-sink tokens together, listed or not.
  std::map<int, double> masses_of_all(const SlowObservation& seen) const;
  // Attention per token of the page, sinks included.
  double attention(const Page& page, const SlowObservation& seen, double mass) const;
  double resident_sinks() const;
  double baseline_score(int index, const Page& page) const;
  double window_score(const Page& page) const;
  double draw(int index, const Page& page) const;
  void observe_memdecay(const SlowObservation& seen, const std::map<int, double>& mass);
  void observe_n0(const SlowObservation& seen, const std::map<int, double>& mass);
  void observe_n(const SlowObservation& seen, const std::map<int, double>& mass);
  // value >= threshold, noting a close call.
  bool reaches(double value, double threshold);
  // Of the listed candidates, at most `most` by (u descending, page).
  void refresh(std::vector<std::pair<double, int>> candidates, double most);

  SlowConfig config_;
  std::vector<SlowRegion> first_regions_;
  std::map<int, Page> pages_;
  double now_ = 0, turns_ = 0, seconds_ = 0;
  double last_observed_ = 0;
  std::vector<double> queries_;  // of each observation
  double uses_ = 0;
  bool hangs_on_rounding_ = false;
};

}  // namespace memdecay::test
