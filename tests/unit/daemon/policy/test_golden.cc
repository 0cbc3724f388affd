// Golden histories: the product's victims and scores are those of an independent implementation.
// Runs every *.json of MEMDECAY_GOLDEN_DIR, by default tests/golden/policy. Thread: one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "tests/support/golden_policy.h"

namespace memdecay::test {
namespace {

std::filesystem::path golden_folder() {
  const char* chosen = std::getenv("MEMDECAY_GOLDEN_DIR");
  return chosen != nullptr ? chosen : MEMDECAY_GOLDEN_POLICY_DIR;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(GoldenPolicy, victims_and_scores_equal_the_independent_implementation) {
  size_t histories = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const absl::StatusOr<GoldenResult> result = run_golden_history(read_file(entry.path()));
    ASSERT_TRUE(result.ok()) << result.status();
    for (const std::string& difference : result->differences) ADD_FAILURE() << difference;
    EXPECT_GT(result->decisions, 0u);
    std::cout << entry.path().filename().string() << ": " << result->events << " events, "
              << result->victims << " victims, worst error " << result->worst_relative_error
              << "\n";
    ++histories;
  }
  EXPECT_GE(histories, 1u);
}

std::string history_with(const std::string& events) {
  return R"({"policy":"memdecay_n0","pinned":["system"],"events":[)" + events + "]}";
}
constexpr char kSeals[] =
    R"({"t":0,"seal":0,"regions":[["user",16]]},{"t":0,"seal":1,"regions":[["user",16]]},
       {"t":0,"seal":2,"regions":[["plan",16]]},{"t":0,"seal":3,"regions":[["plan",16]]},
       {"t":0,"seal":4,"regions":[["plan",16]]})";

TEST(GoldenPolicy, a_wrong_victim_a_wrong_score_and_a_missing_page_are_found) {
  const std::string seals = kSeals;
  const auto differences = [&](const std::string& last) {
    const auto result = run_golden_history(history_with(seals + "," + last));
    return result.ok() ? result->differences.size() : 99u;
  };
  const std::string right = R"("scores":[-0.7369655941662062,-0.15200309344504997]})";
  EXPECT_EQ(differences(R"({"t":0,"order":[1,2],)" + right), 0u);
  EXPECT_EQ(differences(R"({"t":0,"order":[2,1],)" + right), 1u);
  EXPECT_EQ(differences(R"({"t":0,"order":[1],"scores":[-0.7369655941662062]})"), 1u);
  EXPECT_EQ(differences(R"({"t":0,"evict":[1],"scores":[-0.736965595]})"), 1u);
}

TEST(GoldenPolicy, what_is_no_history_is_refused) {
  const std::string seals = kSeals;
  for (const std::string& text :
       {std::string("["), std::string("{}"), std::string(R"({"policy":"x","events":[]})"),
        history_with(R"({"seal":"a"})"), history_with(R"({"dance":1})"),
        history_with(R"({"pin":7})"), history_with(R"({"seal":0,"regions":[["user",17]]})"),
        history_with(R"({"seal":0,"regions":[["moon",16]]})"),
        history_with(seals + R"(,{"restore":1})"), history_with(seals + R"(,{"seal":1})"),
        history_with(seals + R"(,{"attend":{"masses":{"x":1}}})")}) {
    EXPECT_FALSE(run_golden_history(text).ok()) << text;
  }
}

}  // namespace
}  // namespace memdecay::test
