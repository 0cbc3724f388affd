// The engine table: a message is applied once, in order, whatever the stream does; who does not
// read is cut; a dead engine's last messages come before its end.
// Thread: one; the reactor is run by hand on a real ledger with ports that do nothing.
#include "daemon/server/engine_table.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "daemon/base/limits.h"
#include "proto/contract/error.h"

namespace memdecay::server {
namespace {

class StillClock final : public base::Clock {
 public:
  Instant now() const override { return now_; }
  void pass(Duration by) { now_ = now_ + by; }

 private:
  Instant now_{1'000'000'000};
};

class NoBytes final : public reactor::Bytes {
 public:
  absl::Status create_slab(const ledger::CreateSlab&) override { return absl::OkStatus(); }
  void destroy_slab(SlabId) override {}
  void start_copy(const ledger::StartCopy&) override {}
  void cancel_copy(CopyId) override {}
  std::optional<ledger::CopyDone> finish_copy(ledger::CopyDone done) override { return done; }
  void drop_host(ContentId) override {}
  void shadow_row(const ledger::ShadowRow&) override {}
};
class NoFences final : public reactor::Fences {
 public:
  void watch(EngineId, const Fence&) override {}
};
class NoEdge final : public reactor::Edge {
 public:
  void reply(const ledger::Reply& reply) override { replies.push_back(reply); }
  void notify(const ledger::Notice&) override {}
  void share_slab(const ledger::ShareSlab&) override {}
  std::vector<ledger::Reply> replies;
};

class FakePort final : public StreamPort {
 public:
  void write(const v1::StreamResponse& message) override { written.push_back(message); }
  void read() override { ++reads; }
  void close(const absl::Status& status) override { closed = status; }

  std::vector<v1::StreamResponse> written;
  int reads = 0;
  std::optional<absl::Status> closed;
};

constexpr EngineId kEngine{7};
constexpr Epoch kEpoch{1};

class EngineTableTest : public testing::Test {
 protected:
  EngineTableTest()
      : reactor_({}, clock_, edge_, bytes_, fences_),
        table_({.stream_queue = 4, .replay = 2, .stream_window = 2}, clock_,
               [this](EngineId engine) { cut_.push_back(engine); }) {
    table_.bind(reactor_);
    token_[0] = 9;
    table_.add({kEngine, kEpoch, TenantId{1}, 0}, token_);
  }

  EngineTable::Admission admit(uint64_t seq) { return table_.admit(kEngine, kEpoch, seq, 0); }
  void answer(uint64_t seq) {
    v1::StreamResponse response;
    response.mutable_reply()->set_re(seq);
    table_.answer(kEngine, seq, response);
  }
  // What the engine sees next; an empty optional when nothing is being written.
  std::optional<v1::StreamResponse> take(FakePort& port) {
    if (port.written.empty()) return std::nullopt;
    v1::StreamResponse message = port.written.back();
    port.written.clear();
    table_.written(kEngine, port);
    return message;
  }

  StillClock clock_;
  NoEdge edge_;
  NoBytes bytes_;
  NoFences fences_;
  reactor::Reactor reactor_;
  EngineTable table_;
  Token token_{};
  std::vector<EngineId> cut_;
};

TEST_F(EngineTableTest, message_is_applied_once_and_answered_again) {
  FakePort first;
  ASSERT_TRUE(table_.attach_stream(kEngine, first).ok());
  EXPECT_EQ(admit(1), EngineTable::Admission::kFresh);
  EXPECT_EQ(admit(1), EngineTable::Admission::kHandled);  // still being answered
  answer(1);
  EXPECT_EQ(take(first)->reply().re(), 1u);
  table_.detach_stream(kEngine, first);

  FakePort second;
  ASSERT_TRUE(table_.attach_stream(kEngine, second).ok());
  EXPECT_EQ(admit(1), EngineTable::Admission::kHandled);
  EXPECT_EQ(take(second)->reply().re(), 1u);
}

TEST_F(EngineTableTest, answer_that_nobody_read_comes_on_the_next_stream) {
  FakePort first;
  ASSERT_TRUE(table_.attach_stream(kEngine, first).ok());
  admit(1);
  answer(1);
  EXPECT_EQ(first.written.size(), 1u);  // and the stream breaks before it is out
  table_.detach_stream(kEngine, first);
  FakePort second;
  ASSERT_TRUE(table_.attach_stream(kEngine, second).ok());
  EXPECT_EQ(take(second)->reply().re(), 1u);
}

TEST_F(EngineTableTest, number_that_is_forgotten_is_refused_and_not_applied) {
  FakePort port;
  ASSERT_TRUE(table_.attach_stream(kEngine, port).ok());
  for (const uint64_t seq : {1u, 2u, 3u}) {
    EXPECT_EQ(admit(seq), EngineTable::Admission::kFresh);
    answer(seq);
    take(port);
  }
  EXPECT_EQ(admit(1), EngineTable::Admission::kHandled);
  EXPECT_EQ(take(port)->reply().error().code(), v1::ERROR_CODE_INVALID_ARGUMENT);
}

TEST_F(EngineTableTest, message_of_an_older_epoch_is_stale) {
  FakePort port;
  ASSERT_TRUE(table_.attach_stream(kEngine, port).ok());
  EXPECT_EQ(table_.admit(kEngine, Epoch{0}, 1, 0), EngineTable::Admission::kHandled);
  EXPECT_EQ(take(port)->reply().error().code(), v1::ERROR_CODE_STALE_EPOCH);
}

TEST_F(EngineTableTest, stream_is_not_read_while_too_much_is_unanswered) {
  FakePort port;
  ASSERT_TRUE(table_.attach_stream(kEngine, port).ok());
  table_.read_on(kEngine, port);
  EXPECT_EQ(port.reads, 1);
  admit(1);
  table_.read_on(kEngine, port);
  EXPECT_EQ(port.reads, 2);
  admit(2);
  table_.read_on(kEngine, port);
  EXPECT_EQ(port.reads, 2);
  answer(1);
  EXPECT_EQ(port.reads, 3);
}

TEST_F(EngineTableTest, stream_is_not_read_while_the_lane_is_full) {
  FakePort port;
  ASSERT_TRUE(table_.attach_stream(kEngine, port).ok());
  for (size_t i = 0; i < base::limits::kStreamLane; ++i) {
    ASSERT_EQ(reactor_.post_stream(ledger::Tick{}), reactor::Posted::kTaken);
  }
  table_.post(kEngine, ledger::Tick{});  // parked, not lost
  table_.read_on(kEngine, port);
  EXPECT_EQ(port.reads, 0);
  reactor_.run_ready();
  table_.stream_room();
  EXPECT_EQ(port.reads, 1);
}

TEST_F(EngineTableTest, engine_that_does_not_read_is_cut) {
  FakePort port;
  ASSERT_TRUE(table_.attach_stream(kEngine, port).ok());
  for (uint64_t i = 0; i < 4; ++i) table_.notify({kEngine, SessionId{1}, ledger::ReadyNotice{}});
  EXPECT_TRUE(cut_.empty());
  table_.notify({kEngine, SessionId{1}, ledger::ReadyNotice{}});
  EXPECT_EQ(cut_, std::vector<EngineId>{kEngine});
  EXPECT_TRUE(port.closed.has_value());
}

TEST_F(EngineTableTest, half_closed_stream_ends_when_all_is_answered) {
  FakePort port;
  ASSERT_TRUE(table_.attach_stream(kEngine, port).ok());
  admit(1);
  table_.end_when_answered(kEngine, port);
  EXPECT_FALSE(port.closed.has_value());
  answer(1);
  EXPECT_FALSE(port.closed.has_value());
  take(port);
  ASSERT_TRUE(port.closed.has_value());
  EXPECT_TRUE(port.closed->ok());
}

TEST_F(EngineTableTest, dead_engine_is_over_after_its_last_message_was_stepped) {
  FakePort port;
  ASSERT_TRUE(table_.attach_stream(kEngine, port).ok());
  table_.post_behind(kEngine, ledger::Disconnected{kEngine});
  table_.bury(kEngine);
  // Its stream still holds messages: the first Disconnected is not the end.
  EXPECT_EQ(table_.disconnected_stepped(kEngine), EngineTable::Farewell::kNotYet);
  table_.post(kEngine, ledger::Tick{});
  table_.detach_stream(kEngine, port);
  EXPECT_EQ(table_.disconnected_stepped(kEngine), EngineTable::Farewell::kOver);
  EXPECT_FALSE(table_.find(kEngine).ok());
}

TEST_F(EngineTableTest, stream_that_outlives_its_process_is_ended) {
  FakePort port;
  ASSERT_TRUE(table_.attach_stream(kEngine, port).ok());
  table_.bury(kEngine);
  table_.close_buried();
  EXPECT_FALSE(port.closed.has_value());
  clock_.pass(Duration::from_seconds(3));
  table_.close_buried();
  EXPECT_TRUE(port.closed.has_value());
}

TEST_F(EngineTableTest, token_must_match_in_every_byte) {
  EXPECT_TRUE(table_.authenticate(kEngine, token_).ok());
  for (size_t i = 0; i < token_.size(); ++i) {
    Token wrong = token_;
    wrong[i] = static_cast<uint8_t>(wrong[i] ^ 1);
    EXPECT_EQ(error_code(table_.authenticate(kEngine, wrong).status()), ErrorCode::kPermission);
  }
  EXPECT_FALSE(table_.authenticate(EngineId{8}, token_).ok());
}

TEST_F(EngineTableTest, silence_counts_from_the_question) {
  clock_.pass(Duration::from_seconds(60));
  table_.heard(kEngine);
  EXPECT_TRUE(table_.quiet().empty());
  table_.notify({kEngine, SessionId{1}, ledger::EvictNotice{}});
  clock_.pass(Duration::from_seconds(11));
  ASSERT_EQ(table_.quiet().size(), 1u);
  EXPECT_EQ(table_.quiet()[0].second, EngineTable::Quiet::kOwesAnswer);
  table_.flag_silent(kEngine);
  EXPECT_TRUE(table_.quiet().empty());
  table_.heard(kEngine);
  EXPECT_EQ(table_.owing(), 0u);
}

}  // namespace
}  // namespace memdecay::server
