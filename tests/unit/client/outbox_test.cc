// The outbox: what was not answered is sent again, in order, and changes things once.
#include "client/lib/outbox.h"

#include <gtest/gtest.h>

#include <vector>

namespace memdecay::client {
namespace {

v1::Reply reply_to(uint64_t seq) {
  v1::Reply reply;
  reply.set_re(seq);
  return reply;
}

std::vector<uint64_t> unanswered(const Outbox& outbox) {
  std::vector<uint64_t> out;
  outbox.each_unanswered(
      [&out](const v1::StreamRequest& message) { out.push_back(message.seq()); });
  return out;
}

TEST(Outbox, numbers_count_from_one_and_replay_keeps_their_order) {
  Outbox outbox;
  for (int i = 0; i < 4; ++i) outbox.add({}, Outbox::Wait::kNobody, nullptr);
  EXPECT_TRUE(outbox.settle(reply_to(2)));
  EXPECT_EQ(unanswered(outbox), (std::vector<uint64_t>{1, 3, 4}));
}

TEST(Outbox, answer_changes_things_once_even_when_it_comes_twice) {
  Outbox outbox;
  int applied = 0;
  outbox.add({}, Outbox::Wait::kNobody, [&applied](const v1::Reply&) { ++applied; });
  EXPECT_TRUE(outbox.settle(reply_to(1)));
  EXPECT_FALSE(outbox.settle(reply_to(1)));
  EXPECT_FALSE(outbox.settle(reply_to(7)));
  EXPECT_EQ(applied, 1);
}

TEST(Outbox, caller_that_went_away_does_not_stop_the_effect) {
  Outbox outbox;
  int applied = 0;
  const uint64_t ticket =
      outbox.add({}, Outbox::Wait::kCaller, [&applied](const v1::Reply&) { ++applied; });
  outbox.abandon(ticket);
  EXPECT_EQ(unanswered(outbox).size(), 1u);
  EXPECT_TRUE(outbox.settle(reply_to(1)));
  EXPECT_EQ(applied, 1);
  EXPECT_FALSE(outbox.answered(ticket));
}

TEST(Outbox, new_engine_fails_what_the_old_one_asked_and_counts_from_one_again) {
  Outbox outbox;
  outbox.add({}, Outbox::Wait::kNobody, nullptr);
  const uint64_t old = outbox.add({}, Outbox::Wait::kCaller, nullptr);
  outbox.fail_all({ErrorCode::kStaleEpoch, "asked", "there", "todo"});
  const uint64_t fresh = outbox.add({}, Outbox::Wait::kCaller, nullptr);
  EXPECT_EQ(outbox.message(fresh).seq(), 1u);
  EXPECT_TRUE(outbox.answered(old));
  EXPECT_EQ(outbox.take(old).error().code(), v1::ERROR_CODE_STALE_EPOCH);
  EXPECT_TRUE(outbox.settle(reply_to(1)));
  EXPECT_TRUE(outbox.answered(fresh));
}

TEST(Outbox, message_refused_unseen_is_sent_under_a_new_number_with_its_effect) {
  Outbox outbox;
  int applied = 0;
  const uint64_t ticket =
      outbox.add({}, Outbox::Wait::kCaller, [&applied](const v1::Reply&) { ++applied; });
  outbox.add({}, Outbox::Wait::kNobody, nullptr);
  const v1::StreamRequest& again = outbox.renumber(ticket, 2);
  EXPECT_EQ(again.seq(), 3u);
  EXPECT_EQ(again.epoch(), 2u);
  EXPECT_FALSE(outbox.settle(reply_to(1)));
  EXPECT_EQ(unanswered(outbox), (std::vector<uint64_t>{2, 3}));
  EXPECT_TRUE(outbox.settle(reply_to(3)));
  EXPECT_TRUE(outbox.answered(ticket));
  EXPECT_EQ(applied, 1);
}

}  // namespace
}  // namespace memdecay::client
