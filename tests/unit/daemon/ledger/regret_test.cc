// Regret is counted where a page was wanted soon after the daemon let it go, and nowhere else; and
// what would have saved a page does save it.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "daemon/ledger/savers.h"
#include "tests/unit/daemon/ledger/ledger_world.h"

namespace memdecay::ledger {
namespace {

Options lossy_pool() {
  Options options = small_pool(16, 32);
  options.regret_steps = 10;
  options.regret = Duration::from_milliseconds(500);
  options.policy.page_tokens = 16;
  return options;
}

class RegretTest : public ::testing::Test {
 protected:
  // Lets the budget push `budget` .. pages out of the session; gives up whatever is asked.
  void shrink(uint32_t budget) {
    give_up(world_.step(
        Event(SetBudget{.origin = operator_, .session = session_, .budget_pages = budget})));
    world_.finish_copies();
  }
  void give_up(const Effects& effects) {
    for (const auto& notice : LedgerWorld::notices<EvictNotice>(effects)) {
      GaveUp gave{.origin = engine_, .session = session_, .decision = notice.decision};
      for (const auto& [page, reason] : notice.pages) gave.pages.push_back(page);
      world_.ask(gave);
    }
  }
  void restore(PageIndex page) {
    world_.ask(SetBudget{.origin = operator_, .session = session_, .budget_pages = 0});
    world_.ask(RestorePages{.origin = engine_, .session = session_, .pages = {page}});
    world_.finish_copies();
    const auto pages = *report_pages(world_.ledger(), session_);
    world_.ask(Resident{.origin = engine_,
                        .session = session_,
                        .pages = {page},
                        .generations = {pages[page].view.slot.generation}});
  }
  void step_to(uint64_t step) {
    world_.ask(Observe{.origin = engine_, .session = session_, .step = step});
  }
  RegionFigures user() { return report_figures(world_.ledger()).regions.at(2); }
  uint64_t counted(const char* name) {
    return report_count(world_.ledger(), name, "region=user|policy=lru");
  }
  void TearDown() override { EXPECT_EQ(world_.ledger().audit(), std::vector<std::string>{}); }

  LedgerWorld world_{lossy_pool()};
  Origin engine_ = world_.attach();
  Origin operator_{.tenant = TenantId{1}};
  SessionId session_ = world_.open(engine_, Mode::kLossy);
};

TEST_F(RegretTest, a_page_back_within_the_steps_is_regretted_once) {
  ASSERT_TRUE(world_.fill(engine_, session_, 6, 7, 0).ok());
  step_to(100);
  shrink(4);
  EXPECT_EQ(user().evictions, 2u);
  EXPECT_EQ(user().regrets, 0u) << "it may still be right";
  step_to(110);
  restore(0);
  EXPECT_EQ(user().regrets, 1u);
  EXPECT_EQ(counted("regret_total"), 1u);
  EXPECT_EQ(user().idle_regrets, 0u);
  step_to(111);
  restore(1);
  EXPECT_EQ(user().regrets, 1u) << "eleven steps are not soon";
  EXPECT_EQ(user().evictions, 2u);
}

TEST_F(RegretTest, back_and_forth_is_thrash_and_a_long_absence_ends_it) {
  const OpenSession oldest_first{.origin = engine_,
                                 .layout = LedgerWorld::layout(),
                                 .mode = Mode::kLossy,
                                 .policy = "truncation"};
  session_ = std::get<SessionReply>(world_.ask(oldest_first)->body).session;
  ASSERT_TRUE(world_.fill(engine_, session_, 6, 7, 0).ok());
  for (uint64_t round = 1; round <= 3; ++round) {
    step_to(round);
    shrink(5);  // page 0, whatever was restored
    restore(0);
    EXPECT_EQ(report_figures(world_.ledger()).thrashes, round - 1);
  }
  step_to(50);
  shrink(5);
  step_to(90);
  restore(0);
  shrink(5);
  restore(0);
  EXPECT_EQ(report_figures(world_.ledger()).thrashes, 2u) << "the first one after a long absence";
  EXPECT_EQ(user().regrets, 4u);
}

TEST_F(RegretTest, what_was_asked_for_by_hand_is_nobodys_regret) {
  ASSERT_TRUE(world_.fill(engine_, session_, 3, 7, 0).ok());
  give_up(world_.step(Event(EvictPages{.origin = operator_, .session = session_, .pages = {0}})));
  world_.finish_copies();
  restore(0);
  EXPECT_EQ(user().evictions, 0u);
  EXPECT_EQ(user().regrets, 0u);
}

TEST_F(RegretTest, a_waiting_session_makes_no_steps_so_its_pages_go_by_time) {
  ASSERT_TRUE(world_.fill(engine_, session_, 6, 7, 0).ok());
  for (const auto& [wait_ms, regrets] : {std::pair{499, 4u}, {501, 4u}}) {
    world_.ask(Park{.origin = engine_, .session = session_, .state = SessionState::kWaitingTool});
    give_up(world_.step(Event(Pressure{.origin = operator_, .pages = 14})));
    world_.finish_copies();
    world_.advance(Duration::from_milliseconds(wait_ms));
    world_.ask(Unpark{.origin = engine_, .session = session_});
    world_.finish_copies();
    const auto pages = *report_pages(world_.ledger(), session_);
    Resident resident{.origin = engine_, .session = session_};
    for (const PageReport& page : pages) {
      if (page.view.state != PageState::kRestoring) continue;
      resident.pages.push_back(page.view.page);
      resident.generations.push_back(page.view.slot.generation);
    }
    world_.ask(resident);
    EXPECT_EQ(user().idle_regrets, regrets) << wait_ms;
  }
  EXPECT_EQ(user().evictions, 8u);
  EXPECT_EQ(user().regrets, 0u);
  EXPECT_EQ(counted("regret_idle_total"), 4u);
}

TEST_F(RegretTest, a_question_that_is_taken_back_was_no_eviction) {
  ASSERT_TRUE(world_.fill(engine_, session_, 4, 7, 0).ok());
  world_.step(Event(SetBudget{.origin = operator_, .session = session_, .budget_pages = 3}));
  EXPECT_EQ(user().evictions, 1u);
  world_.ask(RestorePages{.origin = engine_, .session = session_, .pages = {0}});
  world_.ask(SetBudget{.origin = operator_, .session = session_, .budget_pages = 0});
  world_.ask(Kept{.origin = engine_, .session = session_, .pages = {0}});
  EXPECT_EQ(user().evictions, 0u);
  EXPECT_EQ(user().regrets, 0u);
}

// ---- what would have saved it

TEST(savers, half_lives_and_bases_reach_the_score_that_is_missing) {
  // base log2(0.6), 40 steps at a half-life of 31.
  const Terms terms = {{"base", std::log2(0.6)}, {"decay", -40.0 / 31}, {"evidence", 0.5}};
  const Growth growth = growth_for(terms, 0.4);
  EXPECT_NEAR(*growth.b, std::exp2(0.4), 1e-12);
  EXPECT_NEAR(-40.0 / (31 * *growth.half_life), -40.0 / 31 + 0.4, 1e-12);
  EXPECT_FALSE(growth_for(terms, 1.5).half_life.has_value()) << "a page cannot decay less than not";
}

TEST(savers, the_papers_score_is_a_product) {
  const Growth growth = growth_for({{"decayed_base", 0.2}, {"attention", 0.01}}, 0.1);
  EXPECT_NEAR(*growth.b, 1.5, 1e-12);
  EXPECT_FALSE(growth.half_life.has_value());
  EXPECT_FALSE(growth_for({{"last_use", 3}}, 0.1).b.has_value());
}

struct Lived {
  LedgerWorld world;
  Origin engine;
  SessionId session;
};

// Six pages of `user` sealed at steps 0, 10, .. 50, budget 6, then a seventh is wanted at step 60.
DecisionReport first_victim(double b_of_user, double half_life_of_user, uint32_t budget) {
  Options options = small_pool(16, 32);
  options.policy = {.name = "memdecay_n", .sinks = 0, .recent = 0, .grace = false};
  options.policy.regions = policy::default_regions();
  options.policy.regions[2] = {b_of_user, half_life_of_user};
  LedgerWorld world(options);
  const Origin engine = world.attach();
  const SessionId session = world.open(engine, Mode::kLossy);
  for (PageIndex page = 0; page < 6; ++page) {
    const RegionId region = page == 0 ? 2 : 1;  // page 0 is user, the others are plan
    world.ask(Tag{
        .origin = engine, .session = session, .spans = {{{page * 16, page * 16 + 16}, region}}});
    EXPECT_TRUE(world.fill(engine, session, 1, page + 1, page).ok());
    world.ask(Observe{.origin = engine, .session = session, .step = page * 10 + 10});
  }
  world.step(Event(
      SetBudget{.origin = {.tenant = TenantId{1}}, .session = session, .budget_pages = budget}));
  const auto decisions = report_last_decisions(world.ledger(), {}, 1);
  return decisions.empty() ? DecisionReport{} : decisions.front();
}

double figure_after(const std::string& text, const std::string& name) {
  const size_t at = text.find(name);
  EXPECT_NE(at, std::string::npos) << name << " in " << text;
  return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size()));
}

TEST(savers, the_figures_that_explain_gives_would_have_saved_the_page) {
  const DecisionReport victim = first_victim(0.6, 31, 5);
  ASSERT_EQ(victim.page, 0u);
  EXPECT_NE(victim.first_spared.find("page 1: score"), std::string::npos) << victim.first_spared;
  EXPECT_NE(victim.saved_by.find("budget + 1 page (now 5)"), std::string::npos) << victim.saved_by;
  const double b = figure_after(victim.saved_by, "b of user >= ");
  const double half_life = figure_after(victim.saved_by, "half_life of user >= ");
  EXPECT_EQ(first_victim(b * 1.001, 31, 5).page, 1u) << victim.saved_by;
  EXPECT_EQ(first_victim(b * 0.98, 31, 5).page, 0u) << victim.saved_by;
  EXPECT_EQ(first_victim(0.6, half_life * 1.001, 5).page, 1u) << victim.saved_by;
  EXPECT_EQ(first_victim(0.6, half_life * 0.98, 5).page, 0u) << victim.saved_by;
  EXPECT_EQ(first_victim(0.6, 31, 6).decision.value, 0u) << "and so would the room";
}

}  // namespace
}  // namespace memdecay::ledger
