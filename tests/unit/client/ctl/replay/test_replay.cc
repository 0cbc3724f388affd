// Replays: ratios by hand, of the small trace that is shipped, refusals with their exit codes, and
// what is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/ctl/replay/command.h"
#include "client/ctl/replay/distinct.h"
#include "client/ctl/replay/future.h"
#include "client/ctl/replay/replay.h"
#include "client/ctl/replay/report.h"
#include "proto/contract/error.h"
#include "tests/unit/client/ctl/replay/synthetic_trace.h"
#include "tests/unit/client/ctl/replay/trace_files.h"

namespace memdecay::ctl {
namespace {

using Requests = std::vector<std::vector<uint64_t>>;

ReplayResult replayed(const ReplayPlan& plan, const Requests& requests) {
  auto replay = Replay::make(plan, [] { return Instant{}; });
  EXPECT_TRUE(replay.ok()) << replay.status();
  Future future;
  for (const auto& blocks : requests) future.add(blocks);
  future.close();
  if (Replay::needs_future(plan)) replay->set_future(std::move(future));
  int64_t second = 0;
  for (const auto& blocks : requests) {
    TraceRequest request;
    request.at = Instant{++second * 1'000'000'000};
    request.blocks = blocks;
    EXPECT_TRUE(replay->add(request).ok());
  }
  return replay->finish();
}

TEST(Replay, a_block_counts_as_prefix_hit_only_while_all_before_it_hit) {
  // The second request finds 1, not 9, and 2 although 9 was missing.
  const ReplayResult result = replayed({{"lru"}, {10}}, {{1, 2}, {1, 9, 2}, {1, 9, 2}});
  EXPECT_EQ(result.requests, 3u);
  EXPECT_EQ(result.blocks, 8u);
  EXPECT_EQ(result.unique, 3u);
  EXPECT_DOUBLE_EQ(result.rows[0].prefix_hit_ratio, (1 + 3) / 8.0);
  EXPECT_DOUBLE_EQ(result.rows[0].block_hit_ratio, (2 + 3) / 8.0);
}

TEST(Replay, a_request_starts_its_own_prefix) {
  const ReplayResult result = replayed({{"lru"}, {10}}, {{1}, {8, 1}, {1, 8}});
  EXPECT_DOUBLE_EQ(result.rows[0].prefix_hit_ratio, 2 / 5.0);
  EXPECT_DOUBLE_EQ(result.rows[0].block_hit_ratio, 3 / 5.0);
}

TEST(Replay, every_block_that_was_used_becomes_resident_and_lru_drops_the_oldest) {
  const ReplayResult result = replayed({{"lru"}, {2}}, {{1}, {2}, {1}, {3}, {2}, {1}});
  EXPECT_DOUBLE_EQ(result.rows[0].block_hit_ratio, 1 / 6.0);
}

TEST(Replay, min_looks_ahead) {
  const Requests requests = {{1}, {2}, {3}, {1}, {2}, {3}, {1}};
  const ReplayResult result = replayed({{"lru", "min"}, {2}}, requests);
  EXPECT_DOUBLE_EQ(result.rows[0].block_hit_ratio, 0);
  EXPECT_DOUBLE_EQ(result.rows[1].block_hit_ratio, 2 / 7.0) << "what comes in is no victim";
}

TEST(Replay, rows_come_by_policy_and_inside_it_by_capacity) {
  const ReplayResult result = replayed({{"decay", "lru"}, {3, 1}, 4}, {{1}, {1}});
  ASSERT_EQ(result.rows.size(), 4u);
  EXPECT_EQ(result.rows[1].policy, "decay");
  EXPECT_EQ(result.rows[1].capacity, 1u);
  EXPECT_EQ(result.rows[1].salts, 4u);
  EXPECT_DOUBLE_EQ(result.rows[1].prefix_hit_ratio, 0.5);
  EXPECT_EQ(result.rows[2].policy, "lru");
  EXPECT_EQ(result.rows[2].salts, 0u);
}

TEST(Replay, a_trace_that_grew_since_it_was_read_for_min_is_refused) {
  auto replay = Replay::make({{"min"}, {2}}, [] { return Instant{}; });
  ASSERT_TRUE(replay.ok());
  Future future;
  future.add(std::vector<uint64_t>{1});
  future.close();
  replay->set_future(std::move(future));
  TraceRequest request;
  request.blocks = {1, 2};
  EXPECT_EQ(error_code(replay->add(request)), ErrorCode::kDataLoss);
}

TEST(Future, names_the_next_reference_to_the_same_block) {
  Future future;
  future.add(std::vector<uint64_t>{5, 6});
  future.add(std::vector<uint64_t>{5, 5});
  future.close();
  EXPECT_EQ(future.next(0), 2u);
  EXPECT_EQ(future.next(1), Future::kNever);
  EXPECT_EQ(future.next(2), 3u);
  EXPECT_EQ(future.next(3), Future::kNever);
}

TEST(Distinct, is_exact_up_to_its_bound_and_within_two_percent_beyond) {
  Distinct exact(1000), estimate(1000);
  for (uint64_t i = 0; i < 1000; ++i) exact.add(i % 777);
  EXPECT_EQ(exact.count(), 777u);
  EXPECT_FALSE(exact.estimated());
  for (const uint64_t count : {2'000u, 100'000u, 1'000'000u}) {
    Distinct many(1000);
    for (uint64_t i = 0; i < count; ++i) {
      many.add(i);
      many.add(i);
    }
    EXPECT_TRUE(many.estimated());
    EXPECT_NEAR(static_cast<double>(many.count()), static_cast<double>(count),
                0.02 * static_cast<double>(count));
  }
}

// --- the trace that is shipped -----------------------------------------------------------------

TEST(SmallTrace, is_what_its_generator_makes) {
  EXPECT_EQ(test::contents(MEMDECAY_SMALL_TRACE), test::synthetic_trace(1, 400));
}

struct Captured {
  int code = 0;
  std::string out, err;
};

Captured run(ReplayFlags flags) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Captured captured;
  captured.code = run_replay(flags);
  captured.out = testing::internal::GetCapturedStdout();
  captured.err = testing::internal::GetCapturedStderr();
  return captured;
}

ReplayFlags flags_for(const std::string& file) {
  ReplayFlags flags;
  flags.file = file;
  flags.policies = {"lru", "min", "decay", "arc", "s3_fifo"};
  flags.capacities = {"20", "60", "200"};
  flags.print = ReplayFlags::Print::kJson;
  return flags;
}

TEST(SmallTrace, lru_and_min_have_the_ratios_that_were_computed_elsewhere) {
  const Captured captured = run(flags_for(MEMDECAY_SMALL_TRACE));
  ASSERT_EQ(captured.code, 0) << captured.err;
  const auto all = nlohmann::json::parse(captured.out);
  EXPECT_EQ(all["requests"], 400);
  EXPECT_EQ(all["blocks"], 3326);
  EXPECT_EQ(all["unique"], 954);
  // By a list and max() over dictionaries, in another language.
  const std::vector<double> expected = {0.1482261, 0.4687312, 0.6834035,   // lru
                                        0.4158148, 0.6647625, 0.7131690};  // min
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(all["rows"][i]["prefix_hit_ratio"].get<double>(), expected[i], 5e-7) << i;
  }
  for (size_t i = 0; i < 3; ++i) {
    const double min = all["rows"][3 + i]["prefix_hit_ratio"];
    const double decay = all["rows"][6 + i]["prefix_hit_ratio"];
    EXPECT_LE(decay, min) << i;
    EXPECT_GT(decay, all["rows"][i]["prefix_hit_ratio"].get<double>()) << i;
  }
}

TEST(SmallTrace, the_spread_over_salts_is_there_and_holds_their_mean) {
  const auto all = nlohmann::json::parse(run(flags_for(MEMDECAY_SMALL_TRACE)).out);
  double widest = 0;
  for (size_t i = 6; i < 9; ++i) {
    const auto& row = all["rows"][i];
    const double low = row["prefix_hit_ratio_min"], high = row["prefix_hit_ratio_max"];
    const double mean = row["prefix_hit_ratio"];
    EXPECT_EQ(row["salts"], 10);
    EXPECT_LE(low, mean + 1e-12);
    EXPECT_LE(mean, high + 1e-12);
    widest = std::max(widest, high - low);
  }
  EXPECT_GT(widest, 0) << "the salts choose different samples";
}

TEST(SmallTrace, json_has_the_documented_keys_and_each_packing_the_same_figures) {
  test::TraceFiles files;
  const std::string packed =
      files.write("packed", test::gzipped(test::contents(MEMDECAY_SMALL_TRACE)));
  auto plain = nlohmann::json::parse(run(flags_for(MEMDECAY_SMALL_TRACE)).out);
  auto unpacked = nlohmann::json::parse(run(flags_for(packed)).out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : plain.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"blocks", "requests", "rows", "unique"}));
  for (const char* key : {"policy", "capacity", "prefix_hit_ratio", "block_hit_ratio", "seconds"}) {
    for (const auto& row : plain["rows"]) EXPECT_TRUE(row.contains(key)) << key;
  }
  for (auto* all : {&plain, &unpacked}) {
    for (auto& row : (*all)["rows"]) row.erase("seconds");
  }
  EXPECT_EQ(plain, unpacked);
}

TEST(SmallTrace, csv_has_a_line_a_row_and_the_picture_a_curve_a_policy) {
  test::TraceFiles files;
  ReplayFlags flags = flags_for(MEMDECAY_SMALL_TRACE);
  flags.print = ReplayFlags::Print::kCsv;
  flags.svg = files.path("ratios.svg");
  const Captured captured = run(flags);
  ASSERT_EQ(captured.code, 0) << captured.err;
  EXPECT_EQ(std::count(captured.out.begin(), captured.out.end(), '\n'), 1 + 15);
  for (const std::string& line : {std::string("\nlru,20,"), std::string("\ndecay,200,")}) {
    EXPECT_NE(captured.out.find(line), std::string::npos) << line;
  }
  const std::string picture = test::contents(flags.svg);
  size_t curves = 0;
  for (size_t at = 0; (at = picture.find("<polyline", at)) != std::string::npos; ++at) ++curves;
  EXPECT_EQ(curves, 5u);
  EXPECT_EQ(picture.find("nan"), std::string::npos);
  flags.svg = "/nowhere/at/all.svg";
  EXPECT_EQ(run(flags).code, 1);
}

TEST(SmallTrace, text_is_for_people_and_fields_ignored_are_told) {
  ReplayFlags flags = flags_for(MEMDECAY_SMALL_TRACE);
  flags.print = ReplayFlags::Print::kText;
  const Captured captured = run(flags);
  EXPECT_NE(captured.out.find("prefix over salts"), std::string::npos);
  EXPECT_NE(captured.err.find("fields ignored: 0"), std::string::npos) << captured.err;
}

TEST(Refusals, wrong_arguments_exit_with_2_and_say_what_would_be_right) {
  const auto refused = [](ReplayFlags flags, const std::string& word) {
    const Captured captured = run(flags);
    EXPECT_EQ(captured.code, 2) << word;
    EXPECT_NE(captured.err.find(word), std::string::npos) << captured.err;
    EXPECT_TRUE(nlohmann::json::parse(captured.out).contains("error")) << captured.out;
  };
  ReplayFlags flags = flags_for(MEMDECAY_SMALL_TRACE);
  flags.policies = {"lru", "clock"};
  refused(flags, "use one of decay, lru, arc, s3_fifo, min");
  for (const char* capacity : {"0", "-1", "", "1e3", "99999999999999999999", "4000000000"}) {
    flags = flags_for(MEMDECAY_SMALL_TRACE);
    flags.capacities = {capacity};
    refused(flags, "capacity");
  }
  flags = flags_for(MEMDECAY_SMALL_TRACE);
  flags.salts = 0;
  refused(flags, "salts");
  flags = flags_for(MEMDECAY_SMALL_TRACE);
  flags.policies.clear();
  refused(flags, "name at least one");
}

TEST(Refusals, wrong_traces_exit_with_2_and_name_file_and_line) {
  test::TraceFiles files;
  const std::string good = "{\"timestamp\": 4, \"hash_ids\": [1]}\n";
  for (const std::string& second :
       {std::string("{\"timestamp\": 3, \"hash_ids\": [1]}\n"), std::string("nothing\n"),
        std::string("{\"timestamp\": -3, \"hash_ids\": [1]}\n"), std::string("{\"timest")}) {
    const std::string path = files.write("wrong.jsonl", good + second);
    for (const bool ahead : {false, true}) {
      ReplayFlags flags = flags_for(path);
      flags.policies = {ahead ? "min" : "lru"};
      const Captured captured = run(flags);
      EXPECT_EQ(captured.code, 2) << second;
      EXPECT_NE(captured.err.find("wrong.jsonl, line 2"), std::string::npos) << captured.err;
    }
  }
}

TEST(Refusals, min_reads_twice_and_takes_regular_files_only) {
  ReplayFlags flags = flags_for("/dev/null");
  const Captured captured = run(flags);
  EXPECT_EQ(captured.code, 2);
  EXPECT_NE(captured.err.find("twice"), std::string::npos) << captured.err;
}

}  // namespace
}  // namespace memdecay::ctl
