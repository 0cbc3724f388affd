// Traces that memdecayd records: what of one is a request, ratios by hand, and every way in which
// one can be wrong.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/ctl/replay/command.h"
#include "client/ctl/replay/replay.h"
#include "client/ctl/replay/trace.h"
#include "proto/contract/error.h"
#include "tests/unit/client/ctl/replay/trace_files.h"

namespace memdecay::ctl {
namespace {

using Kind = TraceRequest::Kind;

const char* const kHeader =
    R"({"memdecay_trace":1,"page_tokens":16,"sinks":4,"regions":["system","user"],)"
    R"("started_unix":1767225600})"
    "\n";

std::string key(uint64_t number) {
  std::string digits = std::to_string(number);
  return "\"" + std::string(16 - digits.size(), '0') + digits + "\"";
}
std::string line(double t, const std::string& rest) {
  return "{\"t\":" + std::to_string(t) + "," + rest + "}\n";
}
std::string open(double t, int session) {
  return line(
      t, R"("e":"open","tenant":1,"mode":"exact","policy":"lru","s":)" + std::to_string(session));
}
std::string seal(double t, int session, int page, uint64_t number) {
  const std::string name = number == 0 ? "" : ",\"k\":" + key(number);
  return line(t, R"("e":"seal","n":16,"r":[[1,16]],"s":)" + std::to_string(session) +
                     ",\"p\":" + std::to_string(page) + name);
}
std::string look(double t, int session, const std::vector<uint64_t>& numbers, int hit,
                 const std::string& more = "") {
  std::string keys;
  for (const uint64_t number : numbers) keys += (keys.empty() ? "" : ",") + key(number);
  const std::string of = session == 0 ? "" : ",\"s\":" + std::to_string(session);
  return line(t, R"("e":"look","k":[)" + keys + "],\"hit\":" + std::to_string(hit) + more + of);
}
std::string state(double t, int session, const std::string& to) {
  return line(t, R"("e":"state","s":)" + std::to_string(session) + ",\"to\":\"" + to + "\"");
}

class RecordedTraces : public testing::Test {
 protected:
  absl::StatusOr<std::vector<TraceRequest>> read(const std::string& events) {
    auto trace = TraceReader::open(files_.write("r.jsonl", kHeader + events));
    if (!trace.ok()) return trace.status();
    std::vector<TraceRequest> requests;
    while (true) {
      const auto request = trace->next();
      if (!request.ok()) return request.status();
      if (*request == nullptr) break;
      requests.push_back(**request);
    }
    EXPECT_EQ(trace->layout(), TraceReader::Layout::kMemdecay);
    ignored_fields_ = trace->ignored_fields();
    ignored_events_ = trace->recorded()->ignored_events();
    return requests;
  }
  std::string refusal(const std::string& events) {
    const auto requests = read(open(1, 1) + look(1, 1, {7}, 0) + events);
    EXPECT_FALSE(requests.ok()) << events;
    return requests.ok() ? "" : error_detail(requests.status()).there;
  }

  test::TraceFiles files_;
  uint64_t ignored_fields_ = 0;
  uint64_t ignored_events_ = 0;
};

using Blocks = std::vector<uint64_t>;

TEST_F(RecordedTraces, a_look_up_is_a_request_and_the_seals_that_complete_it_are_none) {
  // Keys are hexadecimal in the file; these have decimal digits only, below 10.
  const auto requests = read(open(0, 1) + look(0.5, 1, {1, 2, 3}, 1) + seal(0.5, 1, 0, 1) +
                             seal(0.6, 1, 1, 2) + seal(0.7, 1, 2, 3) + seal(2, 1, 3, 4));
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].blocks, (Blocks{1, 2, 3}));
  EXPECT_EQ((*requests)[0].kind, Kind::kAsked);
  EXPECT_EQ((*requests)[0].at.nanoseconds, 500'000'000);
  EXPECT_EQ((*requests)[1].blocks, Blocks{4}) << "what it generated";
  EXPECT_EQ((*requests)[1].kind, Kind::kStored);
  EXPECT_EQ((*requests)[1].depth, 3u);
}

TEST_F(RecordedTraces, a_turn_is_a_request_for_all_that_the_session_has) {
  const auto requests =
      read(open(0, 1) + look(0, 1, {1}, 0) + seal(0, 1, 0, 1) + seal(0, 1, 1, 0) +
           seal(0, 1, 2, 3) + state(1, 1, "waiting_user") + state(2, 1, "preempted") +
           state(2, 1, "decoding") + state(3, 1, "decoding"));
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 3u);
  EXPECT_EQ((*requests)[2].blocks, (Blocks{1, 3})) << "without the page that nobody else can have";
  EXPECT_EQ((*requests)[2].at.nanoseconds, 2'000'000'000);
}

TEST_F(RecordedTraces, between_two_seals_a_block_is_asked_for_once) {
  const auto requests =
      read(open(0, 1) + look(0, 1, {1, 2}, 0) + seal(0, 1, 0, 1) + seal(0, 1, 1, 2) +
           state(1, 1, "waiting_user") + state(2, 1, "decoding") + look(2, 1, {1, 2, 5, 6}, 2) +
           look(2, 1, {1, 2, 5, 6}, 2));
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 3u);
  EXPECT_EQ((*requests)[1].blocks, (Blocks{1, 2}));
  EXPECT_EQ((*requests)[2].blocks, (Blocks{5, 6})) << "the new message";
  EXPECT_EQ((*requests)[2].depth, 2u);
}

TEST_F(RecordedTraces, peeks_pages_without_a_key_and_other_events_are_no_requests) {
  const auto requests =
      read(look(0, 0, {1, 2}, 0, ",\"peek\":1") + open(0, 1) + seal(0, 1, 0, 0) +
           line(1, R"("e":"obs","s":1,"step":1,"q":5,"nq":1,"sink":1,"tail":0,"rest":0,"m":[])") +
           line(1, R"("e":"thunder","s":1)") + line(1, R"("e":"end","s":1,"why":"x","new":2)") +
           line(1, R"("e":"lost","events":4)") + look(2, 0, {9}, 0));
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 1u);
  EXPECT_EQ((*requests)[0].blocks, Blocks{9}) << "a lease is a request of nobody's session";
  EXPECT_EQ(ignored_events_, 1u);
  EXPECT_EQ(ignored_fields_, 1u);
}

TEST_F(RecordedTraces, forks_cuts_and_ends_change_what_a_turn_needs) {
  const auto requests =
      read(open(0, 1) + look(0, 1, {1, 2}, 0) + seal(0, 1, 0, 1) + seal(0, 1, 1, 2) +
           line(1, R"("e":"fork","s":2,"of":1)") + line(1, R"("e":"cut","s":1,"p":1)") +
           state(2, 1, "waiting_tool") + state(2, 2, "waiting_tool") + state(3, 1, "decoding") +
           state(4, 2, "decoding") + line(5, R"("e":"end","s":2)") + state(6, 2, "waiting_tool") +
           state(7, 2, "decoding"));
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 3u);
  EXPECT_EQ((*requests)[1].blocks, Blocks{1}) << "cut";
  EXPECT_EQ((*requests)[2].blocks, (Blocks{1, 2})) << "the fork keeps both";
}

// A known workload: two sessions with one system prompt (1), then the first one's next turn.
TEST_F(RecordedTraces, ratios_are_those_that_a_hand_counts) {
  const std::string events =
      open(0, 1) + look(0, 1, {1, 2}, 0) + seal(0, 1, 0, 1) + seal(0, 1, 1, 2) +  // misses 1, 2
      seal(1, 1, 2, 3) +                                                          // stores 3
      state(2, 1, "waiting_user") + open(3, 2) + look(3, 2, {1, 4}, 1) +  // 1 hits, 4 misses
      seal(3, 2, 0, 1) + seal(3, 2, 1, 4) + state(9, 1, "decoding");      // 1, 2, 3
  const std::string path = files_.write("hand.jsonl", kHeader + events);
  for (const auto& [capacity, lru, min] :
       std::vector<std::tuple<uint64_t, double, double>>{{4, 4, 4}, {3, 2, 3}, {1, 0, 0}}) {
    auto replay = Replay::make({{"lru", "min"}, {capacity}}, [] { return Instant{}; });
    ASSERT_TRUE(replay.ok());
    Future future;
    auto ahead = TraceReader::open(path);
    for (auto request = ahead->next(); *request != nullptr; request = ahead->next()) {
      future.add((*request)->blocks, (*request)->kind);
    }
    future.close();
    replay->set_future(std::move(future));
    auto trace = TraceReader::open(path);
    for (auto request = trace->next(); *request != nullptr; request = trace->next()) {
      ASSERT_TRUE(replay->add(**request).ok());
    }
    const ReplayResult result = replay->finish();
    EXPECT_EQ(result.requests, 3u);
    EXPECT_EQ(result.blocks, 7u);
    EXPECT_EQ(result.stores, 1u);
    EXPECT_EQ(result.unique, 4u);
    EXPECT_DOUBLE_EQ(result.rows[0].block_hit_ratio, lru / 7) << capacity;
    EXPECT_DOUBLE_EQ(result.rows[1].block_hit_ratio, min / 7) << capacity;
  }
}

TEST(RecordedFuture, holding_a_block_until_it_is_stored_again_gains_nothing) {
  Future future;
  future.add(std::vector<uint64_t>{1, 2});
  future.add(std::vector<uint64_t>{1}, Kind::kStored);
  future.add(std::vector<uint64_t>{1, 2});
  future.close();
  EXPECT_EQ(future.next(0), Future::kNever);
  EXPECT_EQ(future.next(1), 4u);
  EXPECT_EQ(future.next(2), 3u);
}

TEST_F(RecordedTraces, bad_lines_are_refused_with_their_reason) {
  EXPECT_NE(refusal("hello\n").find("no JSON"), std::string::npos);
  EXPECT_NE(refusal(seal(0.5, 1, 0, 7)).find("before"), std::string::npos);
  EXPECT_NE(refusal(line(-1, R"("e":"end","s":1)")).find("negative"), std::string::npos);
  EXPECT_NE(refusal(line(2, R"("e":"seal","s":1,"p":0,"n":16,"r":[[1,16]],"k":"xyz")"))
                .find("16 hex digits"),
            std::string::npos);
  EXPECT_NE(
      refusal(line(2, R"("e":"seal","s":1,"p":4000000,"n":16,"r":[[1,16]])")).find("page 4000000"),
      std::string::npos);
  EXPECT_NE(refusal(R"({"timestamp": 5, "hash_ids": [1]})"
                    "\n")
                .find("there is no t"),
            std::string::npos);
  const std::string cut = seal(2, 1, 0, 7);
  EXPECT_NE(refusal(cut.substr(0, cut.size() / 2)).find("truncated"), std::string::npos);
}

TEST_F(RecordedTraces, a_trace_without_a_request_says_what_one_is) {
  const auto requests = read(open(0, 1) + seal(0, 1, 0, 7));
  ASSERT_FALSE(requests.ok());
  EXPECT_NE(error_detail(requests.status()).todo.find("acquire"), std::string::npos);
  auto header_only = TraceReader::open(files_.write("h.jsonl", kHeader));
  EXPECT_FALSE(header_only->next().ok());
}

TEST_F(RecordedTraces, packed_ones_are_read_too) {
  const std::string text = kHeader + open(0, 1) + look(0, 1, {1}, 0);
  EXPECT_EQ(run_replay({.file = files_.write("packed", test::gzipped(text)),
                        .policies = {"lru"},
                        .capacities = {"1"},
                        .print = ReplayFlags::Print::kJson}),
            0);
}

}  // namespace
}  // namespace memdecay::ctl
