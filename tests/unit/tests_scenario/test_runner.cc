// The runner: it must fail when an expectation does not hold, skip what a world cannot do, and give
// the same hash for the same seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/parser.h"
#include "tests/scenario/runner.h"
#include "tests/scenario/sim_world.h"

namespace memdecay::scenario {
namespace {

using ::testing::HasSubstr;
using Kind = RunResult::Kind;

RunResult run(const std::string& body, uint64_t seed = 1) {
  const absl::StatusOr<Script> script = parse_script("file.scn", "# memdecay-scenario 1\n" + body);
  EXPECT_TRUE(script.ok()) << script.status();
  if (!script.ok()) return {};
  RunOptions options{.seed = seed};
  options.make_world = [] { return std::make_unique<SimScenarioWorld>(World::Tracer()); };
  return run_script(*script, options);
}

constexpr char kStart[] =
    "daemon device=4 host=8 policy=lru\nengine E1\n"
    "session S on E1 mode=lossy\nfill S 3 key=doc\n";

TEST(Runner, passes_what_holds) {
  const RunResult result = run(std::string(kStart) + "evict S:0\nsettle\nexpect S:0 hole\n");
  EXPECT_EQ(result.kind, Kind::kPassed) << result.message;
}

TEST(Runner, a_wrong_expectation_fails_with_line_and_states) {
  const RunResult result = run(std::string(kStart) + "expect S:1 hole\n");
  EXPECT_EQ(result.kind, Kind::kFailed);
  EXPECT_THAT(result.message, HasSubstr("file.scn:6: expect S:1 hole"));
  EXPECT_THAT(result.message, HasSubstr("1:mapped/device"));
  EXPECT_THAT(result.message, HasSubstr("seed 1"));
}

TEST(Runner, an_expected_failure_must_come_and_be_the_right_one) {
  EXPECT_EQ(run(std::string(kStart) + "evict S:9 !unknown_page\n").kind, Kind::kPassed);
  EXPECT_EQ(run(std::string(kStart) + "evict S:9 !busy\n").kind, Kind::kFailed);
  EXPECT_EQ(run(std::string(kStart) + "evict S:0 !busy\n").kind, Kind::kFailed);
  EXPECT_EQ(run(std::string(kStart) + "evict S:9\n").kind, Kind::kFailed);
  EXPECT_EQ(run(std::string(kStart) + "evict S:9 !?\n").kind, Kind::kPassed);
}

TEST(Runner, answers_are_compared) {
  EXPECT_EQ(run(std::string(kStart) + "lookup E1 key=doc pages=3 -> 3\n").kind, Kind::kPassed);
  EXPECT_EQ(run(std::string(kStart) + "lookup E1 key=doc pages=3 -> 2\n").kind, Kind::kFailed);
  EXPECT_EQ(run(std::string(kStart) + "lookup E1 key=doc pages=3 -> 3 missing=1\n").kind,
            Kind::kFailed);
  EXPECT_EQ(run(std::string(kStart) + "lookup E1 key=doc pages=3 -> 3 pending\n").kind,
            Kind::kFailed);
}

TEST(Runner, wrong_bytes_are_found) {
  EXPECT_EQ(run(std::string(kStart) + "expect bytes S:*\n").kind, Kind::kPassed);
  const RunResult spoilt = run(std::string(kStart) + "write S:1 key=other\nexpect bytes S:*\n");
  EXPECT_EQ(spoilt.kind, Kind::kFailed);
  EXPECT_THAT(spoilt.message, HasSubstr("S:1"));
}

TEST(Runner, what_a_world_cannot_do_is_skipped) {
  const RunResult result = run("daemon device=4 disk=8\n");
  EXPECT_EQ(result.kind, Kind::kSkipped);
  EXPECT_THAT(result.message, HasSubstr("disk"));
  EXPECT_EQ(run("daemon device=4\nraw control random=10\n").kind, Kind::kSkipped);
}

TEST(Runner, same_file_and_seed_same_hash) {
  const std::string storm =
      "daemon device=6 host=12\nengine E1\nengine E2\n"
      "session A on E1 mode=lossy\nsession B on E2 mode=lossy\n"
      "parallel {\nrepeat 6 as i { fill A 1 !? }\nrepeat 6 { fill B 1 !? }\n"
      "pressure 2 !?\n}\nsettle\n";
  const RunResult once = run(storm, 5);
  EXPECT_EQ(once.kind, Kind::kPassed) << once.message;
  EXPECT_NE(once.event_hash, 0u);
  EXPECT_EQ(once.event_hash, run(storm, 5).event_hash);
  EXPECT_NE(once.event_hash, run(storm, 6).event_hash);
}

TEST(Runner, loops_tell_their_round) {
  const RunResult result = run(std::string(kStart) + "repeat 4 as i { expect S:$i mapped }\n");
  EXPECT_EQ(result.kind, Kind::kFailed);
  EXPECT_THAT(result.message, HasSubstr("with i = 3"));
}

TEST(Runner, a_failing_branch_fails_the_script) {
  const RunResult result =
      run(std::string(kStart) + "parallel {\nsettle\nexpect S:0 hole\nsettle\n}\n");
  EXPECT_EQ(result.kind, Kind::kFailed);
}

}  // namespace
}  // namespace memdecay::scenario
