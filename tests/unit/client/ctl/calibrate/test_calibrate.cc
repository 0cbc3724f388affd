// What memdecayctl calibrate makes of files: half-lives that are known come back through the trace
// format, the policy file is one that memdecayd takes, and what cannot be calibrated on is refused
// in words.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/calibrate/report.h"
#include "daemon/server/config.h"
#include "proto/contract/error.h"
#include "tests/support/lives.h"
#include "tests/unit/client/ctl/replay/trace_files.h"

namespace memdecay::ctl {
namespace {

using calibration::RegionResult;

testing::LivesOptions agents(uint32_t sessions, uint32_t steps) {
  testing::LivesOptions options;
  options.seed = 77;
  options.sessions = sessions;
  options.steps = steps;
  options.every = 8;
  options.half_lives = testing::true_half_lives();
  return options;
}

std::string lines_of(const testing::LivesOptions& options, const std::string& channel = "") {
  std::string text = trace::to_line(testing::lives_header()) + "\n";
  testing::simulate_lives(options, [&](trace::Event event) {
    if (auto* seen = std::get_if<trace::Observed>(&event.what)) seen->channel = channel;
    text += trace::to_line(event) + "\n";
  });
  return text;
}

absl::StatusOr<CalibrationOutcome> calibrated(const std::vector<std::string>& files,
                                              CalibrationPlan plan = {}) {
  plan.files = files;
  plan.draws = 200;
  const Interrupts interrupts;
  return run_calibration(plan, interrupts);
}

ErrorDetail refused(const std::string& text, CalibrationPlan plan = {}) {
  memdecay::test::TraceFiles files;
  return error_detail(calibrated({files.write("t.jsonl", text)}, std::move(plan)).status());
}

std::string header() { return trace::to_line(testing::lives_header()) + "\n"; }

TEST(Calibrate, FilesTogetherPlainOrGzipGiveHalfLivesATableAndAPolicyFileThatTheDaemonTakes) {
  memdecay::test::TraceFiles files;
  testing::LivesOptions second = agents(24, 600);
  second.seed = 78;
  const auto outcome = calibrated({files.write("a.jsonl", lines_of(agents(24, 600))),
                                   files.write("b", memdecay::test::gzipped(lines_of(second)))});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->result.sessions, 48u);
  const RegionId user = region_id(Region::kUser), tool_in = region_id(Region::kToolIn);
  EXPECT_EQ(outcome->result.regions[user].verdict, RegionResult::Verdict::kFitted);
  EXPECT_NEAR(outcome->result.regions[user].half_life, 60, 25);
  EXPECT_EQ(outcome->result.regions[tool_in].verdict, RegionResult::Verdict::kNothingSeen);

  const auto json = nlohmann::json::parse(calibration_json(*outcome));
  EXPECT_EQ(json["regions"].size(), 7u);
  EXPECT_EQ(json["regions"][user]["verdict"], "fitted");
  EXPECT_EQ(json["expected_lift"]["user"].size(), 24u);
  EXPECT_TRUE(absl::StrContains(calibration_text(*outcome), "default kept: no such page"));
  EXPECT_TRUE(absl::StrContains(calibration_svg(*outcome), "</svg>"));

  const auto config = server::parse_yaml(calibration_yaml(*outcome));
  ASSERT_TRUE(config.ok()) << config.status() << calibration_yaml(*outcome);
  const policy::PolicyOptions& options = config->ledger.policy;
  EXPECT_NEAR(options.regions[user].half_life, outcome->result.regions[user].half_life,
              0.01 * outcome->result.regions[user].half_life);
  EXPECT_EQ(options.regions[tool_in].half_life, 22);  // not fitted: the default
  ASSERT_TRUE(options.expected_lift.has_value());
  EXPECT_TRUE(options.expected_lift->regions.contains(user));
  EXPECT_TRUE(policy::make_policy(options).ok());
}

TEST(Calibrate, TooFewSessionsKeepTheDefaultsAndSaySo) {
  memdecay::test::TraceFiles files;
  const auto outcome = calibrated({files.write("few", lines_of(agents(5, 100)))});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  for (const RegionResult& region : outcome->result.regions) {
    EXPECT_NE(region.verdict, RegionResult::Verdict::kFitted);
    EXPECT_EQ(region.half_life, region.default_half_life);
  }
  EXPECT_TRUE(absl::StrContains(calibration_text(*outcome), "default kept: 5 sessions, 20 are"));
  EXPECT_FALSE(absl::StrContains(calibration_yaml(*outcome), "half_life_tokens"));
}

TEST(Calibrate, WhatIsWrongWithAFileIsSaidWithItsLine) {
  EXPECT_EQ(refused("").there, "there is no line in it");
  EXPECT_EQ(refused("{\"timestamp\":1}\n").there,
            "the first line is no header: there is no memdecay_trace");
  EXPECT_EQ(refused(header() + "{\"t\":0,\"e\":\"step\",\"s\":1,\"st").code, ErrorCode::kDataLoss);
  EXPECT_TRUE(
      absl::StrContains(refused(header() + "{\"t\":0,\"e\":\"st").there, "it is truncated"));
  EXPECT_EQ(refused(header() + "{\"t\":-2,\"e\":\"end\",\"s\":1}\n").there, "t is negative: -2");
  EXPECT_TRUE(absl::StrContains(
      refused(header() + "{\"t\":2,\"e\":\"end\",\"s\":1}\n" + "{\"t\":1,\"e\":\"end\",\"s\":1}\n")
          .asked,
      "line 3"));
  EXPECT_TRUE(absl::StrContains(refused(header() + "hello\n").there, "it is no JSON"));
  EXPECT_EQ(refused(header() + "{\"t\":0,\"e\":\"open\",\"s\":1}\n").there,
            "there is no observation in it");
}

TEST(Calibrate, AGzipStreamThatEndsEarlyIsTruncated) {
  memdecay::test::TraceFiles files;
  std::string cut = memdecay::test::gzipped(lines_of(agents(2, 100)));
  cut.resize(cut.size() / 2);
  EXPECT_EQ(error_code(calibrated({files.write("cut.gz", cut)}).status()), ErrorCode::kDataLoss);
}

TEST(Calibrate, UnknownFieldsPagesAndUnequalSumsAreCounted) {
  memdecay::test::TraceFiles files;
  const std::string seal = R"({"t":0,"e":"seal","s":1,"p":0,"n":16,"r":[[2,16]],"new":1})";
  const std::string obs =
      R"({"t":1,"e":"obs","s":1,"step":1,"q":20,"sink":0,"tail":0,"rest":0,"m":)";
  const auto outcome = calibrated(
      {files.write("t", absl::StrCat(header(), seal, "\n", obs, "[[0,0.5]]}\n", obs,
                                     "[[0,0.4],[9,0.6]]}\n", R"({"t":1,"e":"dance"})", "\n"))});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->pass.ignored_fields, 1u);
  EXPECT_EQ(outcome->pass.ignored_events, 1u);
  EXPECT_EQ(outcome->counts.beyond, 1u);
  EXPECT_EQ(outcome->counts.unknown_pages, 1u);
  EXPECT_TRUE(absl::StrContains(calibration_notes(*outcome), "do not sum to 1"));

  const ErrorDetail none = refused(absl::StrCat(header(), seal, "\n", obs, "[[0,0.5]]}\n"));
  EXPECT_TRUE(absl::StrContains(none.there, "1 do not sum to 1")) << none.there;
}

TEST(Calibrate, EvictedPagesAreRefusedUnlessTheBiasIsAccepted) {
  std::string text = header();
  for (int page = 0; page < 4; ++page) {
    absl::StrAppend(&text, R"({"t":0,"e":"seal","s":1,"n":16,"r":[[2,16]],"p":)", page, "}\n");
  }
  absl::StrAppend(
      &text, R"({"t":0,"e":"out","s":1,"p":[1],"why":"budget"})", "\n",
      R"({"t":1,"e":"obs","s":1,"step":1,"q":64,"sink":0.5,"tail":0,"rest":0.5,"m":[]})", "\n");
  EXPECT_TRUE(absl::StrContains(refused(text).there, "25.0 %"));
  memdecay::test::TraceFiles files;
  CalibrationPlan plan;
  plan.evictions = CalibrationPlan::Evictions::kAccept;
  const auto accepted = calibrated({files.write("t", text)}, plan);
  ASSERT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_TRUE(absl::StrContains(calibration_notes(*accepted), "informative"));
}

TEST(Calibrate, ChannelsAndRegionsMustBeThere) {
  const std::string text = lines_of(agents(2, 100), "L3H1");
  CalibrationPlan plan;
  plan.channels = {"L9H9"};
  EXPECT_EQ(refused(text, plan).there, "the trace has L3H1");
  plan.channels = {"L3H1"};
  plan.regions = {"kitchen"};
  EXPECT_TRUE(absl::StrContains(refused(text, plan).there, "system, plan, user"));
  memdecay::test::TraceFiles files;
  plan.regions = {"user"};
  const auto outcome = calibrated({files.write("t", text)}, plan);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(nlohmann::json::parse(calibration_json(*outcome))["regions"].size(), 1u);
}

TEST(Calibrate, TracesOfDifferentRegionsAreNotMixed) {
  memdecay::test::TraceFiles files;
  trace::Header other = testing::lives_header();
  other.regions.pop_back();
  const auto mixed = calibrated(
      {files.write("a", lines_of(agents(2, 100))), files.write("b", trace::to_line(other) + "\n")});
  EXPECT_TRUE(absl::StrContains(error_detail(mixed.status()).there, "differ in their regions"));
}

}  // namespace
}  // namespace memdecay::ctl
