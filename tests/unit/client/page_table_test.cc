// The page table that an engine sees: what changes at a boundary, what waits, what can be written.
#include "client/lib/page_table.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/client/slabs_for_test.h"

namespace memdecay::client {
namespace {

class PageTableTest : public testing::Test {
 protected:
  PageTableTest() : map_(empty_slab_map()), slabs_(4096), table_(*map_) {
    slab_ = slabs_.send(*map_, 8, SlabAccess::kWritable);
  }

  PageNews grant(PageIndex page, uint32_t index) const {
    return {page, PageState::kGranted, {slab_, index, 1}, Exactness::kExact};
  }
  void extend(uint32_t pages) {
    for (uint32_t i = 0; i < pages; ++i) {
      const PageNews news[] = {grant(table_.size(), table_.size())};
      table_.add_granted(news);
      table_.hand_out(1);
    }
  }
  void extend_and_seal(uint32_t pages) {
    const PageIndex first = table_.size();
    extend(pages);
    table_.seal(first, pages, Exactness::kExact, PageTable::Bytes::kThere);
  }
  const memdecay_page& page(PageIndex index) {
    table_.refresh();
    return table_.snapshot().at(index);
  }

  std::unique_ptr<SlabMap> map_;
  SlabsForTest slabs_;
  PageTable table_;
  SlabId slab_;
};

TEST_F(PageTableTest, granted_page_is_writable_and_sealed_page_is_not) {
  extend(1);
  EXPECT_EQ(page(0).state, MEMDECAY_PAGE_GRANTED);
  ASSERT_NE(page(0).write, nullptr);
  table_.fill_to(3, 16);
  EXPECT_EQ(page(0).state, MEMDECAY_PAGE_FILLING);
  table_.seal(0, 1, Exactness::kExact, PageTable::Bytes::kThere);
  EXPECT_EQ(page(0).state, MEMDECAY_PAGE_MAPPED);
  EXPECT_EQ(page(0).write, nullptr);
  EXPECT_NE(page(0).read, nullptr);
}

TEST_F(PageTableTest, refused_seal_makes_the_page_writable_again_with_its_bytes) {
  extend(1);
  static_cast<char*>(page(0).write)[9] = 'k';
  table_.seal(0, 1, Exactness::kExact, PageTable::Bytes::kThere);
  table_.unseal(0, 1);
  ASSERT_NE(page(0).write, nullptr);
  EXPECT_EQ(static_cast<char*>(page(0).write)[9], 'k');
}

TEST_F(PageTableTest, asked_page_is_readable_until_the_boundary_and_a_hole_after_it) {
  extend_and_seal(3);
  const PageIndex asked[] = {1};
  table_.ask(DecisionId{5}, asked);
  EXPECT_EQ(page(1).state, MEMDECAY_PAGE_ASKED);
  EXPECT_NE(page(1).read, nullptr);
  const auto given = table_.give_up();
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].decision, DecisionId{5});
  EXPECT_EQ(given[0].pages, std::vector<PageIndex>{1});
  EXPECT_EQ(page(1).read, nullptr);
  EXPECT_EQ(page(1).state, MEMDECAY_PAGE_GIVEN_UP);
  table_.released(1);
  EXPECT_EQ(page(1).state, MEMDECAY_PAGE_HOLE);
  EXPECT_TRUE(table_.give_up().empty());
}

TEST_F(PageTableTest, withdrawn_page_stays_and_one_that_has_left_is_not_claimed) {
  extend_and_seal(2);
  const PageIndex both[] = {0, 1};
  const PageIndex first[] = {0};
  table_.ask(DecisionId{1}, first);
  table_.give_up();
  const PageIndex second[] = {1};
  table_.ask(DecisionId{1}, second);
  EXPECT_EQ(table_.withdraw(both), std::vector<PageIndex>{1});
  EXPECT_TRUE(table_.give_up().empty());
  EXPECT_EQ(page(1).state, MEMDECAY_PAGE_MAPPED);
}

TEST_F(PageTableTest, ask_for_an_unsealed_or_unknown_page_changes_nothing) {
  extend(1);
  const PageIndex pages[] = {0, 77};
  table_.ask(DecisionId{1}, pages);
  EXPECT_EQ(page(0).state, MEMDECAY_PAGE_GRANTED);
  EXPECT_TRUE(table_.give_up().empty());
}

TEST_F(PageTableTest, restored_page_comes_at_the_boundary_with_its_generation) {
  extend_and_seal(2);
  const PageIndex asked[] = {0};
  table_.ask(DecisionId{1}, asked);
  table_.give_up();
  table_.released(0);
  const PageNews offer[] = {{0, PageState::kMapped, {slab_, 6, 4}, Exactness::kExact}};
  table_.offer(offer);
  EXPECT_EQ(page(0).read, nullptr);
  const NowResident came = table_.take_offered();
  EXPECT_EQ(came.pages, std::vector<PageIndex>{0});
  EXPECT_EQ(came.generations, std::vector<uint32_t>{4});
  EXPECT_EQ(page(0).slot, 6u);
  EXPECT_NE(page(0).read, nullptr);
  EXPECT_EQ(page(0).write, nullptr);
}

TEST_F(PageTableTest, page_that_is_asked_for_while_it_is_offered_is_given_up_without_being_mapped) {
  extend_and_seal(2);
  const PageIndex asked[] = {0};
  table_.ask(DecisionId{1}, asked);
  table_.give_up();
  table_.released(0);
  const PageNews offer[] = {{0, PageState::kMapped, {slab_, 6, 4}, Exactness::kExact}};
  table_.offer(offer);
  table_.ask(DecisionId{2}, asked);
  EXPECT_TRUE(table_.withdraw(asked).empty());
  const auto given = table_.give_up();
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].decision, DecisionId{2});
  EXPECT_TRUE(table_.take_offered().pages.empty());
  EXPECT_EQ(page(0).read, nullptr);
  table_.offer(offer);
  EXPECT_EQ(table_.take_offered().pages, std::vector<PageIndex>{0});
}

TEST_F(PageTableTest, grant_and_restore_wait_for_a_slab_that_has_not_arrived) {
  extend_and_seal(1);
  const SlabId late{2};
  const PageNews granted[] = {{1, PageState::kGranted, {late, 0, 1}, Exactness::kExact}};
  table_.add_granted(granted);
  const PageNews offer[] = {{0, PageState::kMapped, {late, 1, 1}, Exactness::kExact}};
  table_.offer(offer);
  EXPECT_EQ(table_.ready_ahead(), 0u);
  EXPECT_TRUE(table_.take_offered().pages.empty());
  EXPECT_EQ(slabs_.send(*map_, 2, SlabAccess::kWritable), late);
  table_.resolve();
  EXPECT_EQ(table_.ready_ahead(), 1u);
  EXPECT_EQ(table_.take_offered().pages.size(), 1u);
}

TEST_F(PageTableTest, seal_behind_an_open_fence_protects_only_once_it_has_passed) {
  extend(1);
  auto* bytes = static_cast<char*>(page(0).write);
  table_.seal(0, 1, Exactness::kExact, PageTable::Bytes::kBehindFence);
  EXPECT_EQ(page(0).state, MEMDECAY_PAGE_SEALING);
  EXPECT_EQ(page(0).write, nullptr);
  bytes[0] = 1;  // the producer is still at work
  table_.close_sealed(0, 1);
  EXPECT_EQ(page(0).state, MEMDECAY_PAGE_MAPPED);
}

TEST_F(PageTableTest, truncation_takes_pages_grants_and_what_was_pending_about_them) {
  extend_and_seal(3);
  const PageNews ahead[] = {grant(3, 3)};
  table_.add_granted(ahead);
  const PageIndex asked[] = {0, 2};
  table_.ask(DecisionId{1}, asked);
  table_.cut(1);
  EXPECT_EQ(table_.size(), 1u);
  EXPECT_EQ(table_.handed(), 1u);
  const auto given = table_.give_up();
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].pages, std::vector<PageIndex>{0});
}

TEST_F(PageTableTest, granted_page_that_does_not_follow_the_last_one_is_ignored) {
  const PageNews stray[] = {grant(4, 4)};
  table_.add_granted(stray);
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(PageTableTest, page_sealed_behind_a_hole_is_seen_as_approximate_from_then_on) {
  extend_and_seal(2);
  EXPECT_FALSE(table_.has_holes_before(2));
  const PageIndex asked[] = {0};
  table_.ask(DecisionId{1}, asked);
  table_.give_up();
  EXPECT_TRUE(table_.has_holes_before(2));
  EXPECT_FALSE(table_.has_holes_before(0));
}

TEST_F(PageTableTest, resumed_pages_are_handed_out_but_unsealed_ones_of_the_dead_writer_are_not) {
  const PageNews pages[] = {{0, PageState::kMapped, {slab_, 0, 1}, Exactness::kExact},
                            {1, PageState::kHole, {}, Exactness::kExact},
                            {2, PageState::kFilling, {slab_, 2, 1}, Exactness::kExact}};
  table_.assign(pages);
  EXPECT_EQ(table_.handed(), 2u);
  EXPECT_NE(page(0).read, nullptr);
  EXPECT_EQ(page(1).read, nullptr);
}

}  // namespace
}  // namespace memdecay::client
