// Property: the lowest pages of many sessions together are those that a full merge of every
// session's own order would give, whatever was asked and changed before, ties included.
// Thread: one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "daemon/policy/policy.h"

namespace memdecay::policy {
namespace {

constexpr int kMostPages = 900;  // many blocks, so that bounds matter

using Chosen = std::pair<size_t, PageIndex>;

class Sessions {
 public:
  Sessions(const std::string& name, uint64_t seed) : chance_(seed) {
    const int count = 1 + pick(7);
    for (int i = 0; i < count; ++i) {
      owned_.push_back(make_policy({.name = name, .sinks = 0, .recent = 1}).value());
      grow(*owned_.back(), 1 + pick(kMostPages));
    }
    leased_.resize(owned_.size());
  }

  void change() {
    for (int times = 1 + pick(4); times > 0; --times) {
      Policy& policy = *owned_[any_session()];
      const auto page = static_cast<PageIndex>(pick(kMostPages));
      switch (pick(7)) {
        case 0:
          grow(policy, pick(40));
          break;
        case 1:
          policy.on_step(policy.now() + static_cast<Step>(pick(4) == 0 ? pick(5000) : pick(30)));
          break;
        case 2:
        case 3: {
          const std::vector<PageMass> masses = {{page, 0.5}, {page / 2 + 1, 0.1}};
          policy.on_observe({.step = policy.now() + 1, .rest = 0.4, .masses = masses});
          break;
        }
        case 4:
          evict(policy);
          break;
        case 5:
          if (policy.sealed(page)) change_page(policy, page);
          break;
        default: {
          std::set<PageIndex>& leased = leased_[any_session()];
          for (int i = pick(150); i > 0; --i) leased.insert(static_cast<PageIndex>(pick(300)));
          if (pick(3) == 0) leased.clear();
        }
      }
    }
  }

  void compare() {
    std::vector<Policy::Source> sources;
    for (const auto& policy : owned_) {
      sources.push_back({policy.get(), pick(4) == 0 ? Activity::kIdle : Activity::kActive});
    }
    const auto eligible = [&](size_t source, PageIndex page) {
      return leased_[source].count(page) == 0;
    };
    const size_t count = static_cast<size_t>(pick(3) == 0 ? pick(2000) : pick(40));
    using Key = std::tuple<bool, double, Step, size_t, PageIndex>;
    std::vector<Key> all;
    for (size_t source = 0; source < sources.size(); ++source) {
      const std::unique_ptr<Policy> fresh = sources[source].policy->clone();
      const auto mine = [&](PageIndex page) { return eligible(source, page); };
      for (const Victim& v : fresh->lowest(1u << 20, sources[source].activity, mine)) {
        all.push_back({v.in_grace, v.score, v.tref, source, v.page});
      }
    }
    std::sort(all.begin(), all.end());
    if (all.size() > count) all.resize(count);
    const std::vector<Policy::Pick> picks = Policy::lowest_of(sources, count, eligible);
    ASSERT_EQ(picks.size(), all.size());
    for (size_t i = 0; i < picks.size(); ++i) {
      ASSERT_EQ(Chosen(picks[i].source, picks[i].victim.page),
                Chosen(std::get<3>(all[i]), std::get<4>(all[i])))
          << "rank " << i;
      ASSERT_EQ(picks[i].victim.score, std::get<1>(all[i]));
    }
  }

 private:
  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(chance_); }

  size_t any_session() { return static_cast<size_t>(pick(static_cast<int>(owned_.size()))); }

  void evict(Policy& policy) {
    const auto any = [](PageIndex) { return true; };
    for (const Victim& victim : policy.lowest(3, Activity::kActive, any)) {
      policy.on_evicted(victim.page);
    }
  }

  void change_page(Policy& policy, PageIndex page) {
    switch (pick(7)) {
      case 0:
        return policy.on_retag(page, {{{static_cast<RegionId>(pick(7)), 16}}});
      case 1:
        return policy.on_hint(page, 0.1 * pick(11));
      case 2:
        return policy.on_supersede(page);
      case 3:
        return policy.on_pin(page);
      case 4:
        return policy.on_unpin(page);
      case 5:
        return policy.on_end_group(page, page + 70, GroupEnd::kCut);
      default:
        if (!policy.resident(page)) policy.on_restored(page);
    }
  }

  void grow(Policy& policy, int pages) {
    PageIndex page = 0;
    while (policy.sealed(page)) ++page;
    for (; pages > 0; --pages, ++page) {
      const auto region = static_cast<RegionId>(pick(7));
      if (pick(9) == 0) policy.on_step(policy.now() + 16);
      policy.on_seal(page, {{{.region = region, .tokens = 16}}});
    }
  }

  std::mt19937_64 chance_;
  std::vector<std::unique_ptr<Policy>> owned_;
  std::vector<std::set<PageIndex>> leased_;
};

class LowestOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Policies, LowestOf,
                         testing::Values("h2o", "lru", "memdecay", "memdecay_n", "memdecay_n0",
                                         "norm_sum", "truncation", "tova"),
                         [](const auto& form) { return std::string(form.param); });

TEST_P(LowestOf, many_sessions_equals_the_merge_of_each_ones_whole_order) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Sessions sessions(GetParam(), seed);
    for (int round = 0; round < 12; ++round) {
      sessions.compare();
      if (HasFatalFailure()) return;
      sessions.change();
    }
  }
}

TEST(LowestOfNone, gives_nothing) {
  const auto any = [](size_t, PageIndex) { return true; };
  EXPECT_TRUE(Policy::lowest_of({}, 5, any).empty());
  const auto empty = make_policy({.name = "lru"}).value();
  const std::vector<Policy::Source> sources = {{empty.get(), Activity::kActive}};
  EXPECT_TRUE(Policy::lowest_of(sources, 5, any).empty());
  EXPECT_TRUE(Policy::lowest_of(sources, 0, any).empty());
}

}  // namespace
}  // namespace memdecay::policy
