// Results that grow: what is done is known again, what may be half done is done again.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "proto/contract/error.h"
#include "tests/eval/live_session.h"
#include "tests/eval/results_file.h"

namespace memdecay::eval {
namespace {

std::string line(const PlannedRun& run, uint64_t seed) {
  return R"({"set":"held","seed":)" + std::to_string(seed) + R"(,"policy":")" + run.as +
         R"(","variant":")" + run.variant + R"(","channel":")" + run.channel +
         R"(","sampling":1,"queries":")" + run.queries_name() + R"(","prefill":")" +
         run.prefill_name() + "\"}\n";
}

class ResultsFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = ::testing::TempDir() + "memdecay_" + test->name() + ".jsonl";
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  PlannedRun run_{.policy = "lru", .as = "lru", .variant = "default"};
  std::string path_;
};

TEST_F(ResultsFileTest, the_last_run_of_a_file_is_done_again_and_those_before_it_are_not) {
  {
    absl::StatusOr<ResultsFile> file = ResultsFile::open(path_, "held");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_FALSE(file->holds(run_, 1));
    ASSERT_TRUE(file->add(line(run_, 1) + line(run_, 1)).ok());
    ASSERT_TRUE(file->add(line(run_, 2) + line(run_, 2)).ok());
  }
  const absl::StatusOr<ResultsFile> again = ResultsFile::open(path_, "held");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->holds(run_, 1));
  EXPECT_FALSE(again->holds(run_, 2));
  EXPECT_EQ(std::filesystem::file_size(path_), 2 * line(run_, 1).size());
  PlannedRun other = run_;
  other.channel = "late";
  EXPECT_FALSE(again->holds(other, 1));
}

TEST_F(ResultsFileTest, half_a_line_at_the_end_is_cut_off) {
  {
    std::ofstream file(path_);
    file << line(run_, 1) << line(run_, 2) << line(run_, 3).substr(0, 20);
  }
  const absl::StatusOr<ResultsFile> file = ResultsFile::open(path_, "held");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->holds(run_, 1));
  EXPECT_EQ(std::filesystem::file_size(path_), line(run_, 1).size());
}

TEST_F(ResultsFileTest, another_file_is_refused_and_stays_as_it_is) {
  {
    std::ofstream file(path_);
    file << "Dear diary,\n";
  }
  EXPECT_EQ(error_code(ResultsFile::open(path_, "held").status()), ErrorCode::kInvalidArgument);
  EXPECT_EQ(std::filesystem::file_size(path_), 12u);
}

TEST(Channels, name_heads_as_traces_do) {
  const reference::ModelShape shape{.layers = 30, .heads = 9};
  EXPECT_TRUE(channel_heads("all", shape)->empty());
  EXPECT_EQ(channel_heads("late", shape)->size(), 90u);
  const reference::HeadChoice two = {{3, 0}, {20, 8}};
  EXPECT_EQ(*channel_heads("L20H8+L3H0", shape), two);
  for (const char* bad : {"L30H0", "L3", "early", "L3H0+"}) {
    EXPECT_EQ(error_code(channel_heads(bad, shape).status()), ErrorCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace memdecay::eval
