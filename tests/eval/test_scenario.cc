// Scenarios on pages: facts alone on theirs, everything aligned, wrong files refused.
//
// Skips loudly without the model file (its tokenizer is needed): run deploy/fetch_model.sh.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "adapters/reference/model.h"
#include "proto/contract/error.h"
#include "tests/eval/scenario.h"

namespace memdecay::eval {
namespace {

using reference::ChatTemplate;
using reference::Tokenizer;

constexpr const char* kPadding =
    R"("padding": [" The pump in the hall is steady and the ledger is dusty and all waits.",
                   " The pump in the hall is steady and the ledger is dusty and all waits.",
                   " The pump in the hall is steady and the ledger is dusty and all waits.",
                   " The pump in the hall is steady and the ledger is dusty and all waits."])";

std::string small_scenario() {
  return absl::StrReplaceAll(R"({"memdecay_scenario": 1, "set": "test", "seed": 7,
  "prefill": [
    {"role": "system", "region": "system", PADDING,
     "blocks": [{"text": "You keep notes."}, {"fact": 0}, {"fact": 1}, {"text": " Do not guess."}]},
    {"role": "user", "region": "user", PADDING,
     "blocks": [{"text": " Hello."}, {"instruction": true}]}],
  "answer": {"region": "scratchpad", PADDING, "blocks": [{"text": "Let me see."}]},
  "decode": [{"region": "scratchpad", PADDING,
              "blocks": [{"text": " First this."}, {"use": 1, "text": " Halvern has a door."}]}],
  "facts": [
    {"id": "a", "region": "system", "planting": "opening", "use": "none",
     "key": "backup city for Tarrow", "value": "Rome", "options": ["Paris", "Rome"]},
    {"id": "b", "region": "system", "planting": "opening", "use": "mentioned",
     "key": "door colour for Halvern", "value": "red", "options": ["red", "blue"]}],
  "instruction": {"value": "tea", "options": ["milk", "tea"]},
  "question": "Please repeat it."})",
                             {{"PADDING", kPadding}});
}

class ScenarioTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* given = std::getenv("MEMDECAY_MODEL");
    const auto file = reference::ModelFile::open(given != nullptr ? given : MEMDECAY_MODEL_PATH);
    if (!file.ok()) return;
    tokenizer_ = std::make_unique<Tokenizer>(*Tokenizer::from_gguf(file->gguf()));
    chat_ = std::make_unique<ChatTemplate>(*ChatTemplate::create(*tokenizer_));
  }
  void SetUp() override {
    if (!tokenizer_) GTEST_SKIP() << "no model file: run deploy/fetch_model.sh";
  }

  absl::StatusOr<Scenario> read(const std::string& json) {
    return parse_scenario(json, *tokenizer_, *chat_);
  }
  std::string page_text(const Scenario& scenario, PageIndex page) {
    const std::span<const TokenId> tokens(scenario.tokens);
    return tokenizer_->decode(tokens.subspan(page * kPageTokens, kPageTokens));
  }

  static std::unique_ptr<Tokenizer> tokenizer_;
  static std::unique_ptr<ChatTemplate> chat_;
};
std::unique_ptr<Tokenizer> ScenarioTest::tokenizer_;
std::unique_ptr<ChatTemplate> ScenarioTest::chat_;

TEST_F(ScenarioTest, each_fact_begins_a_page_and_stands_on_it_whole) {
  const absl::StatusOr<Scenario> scenario = read(small_scenario());
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  ASSERT_EQ(scenario->facts.size(), 2u);
  const auto text = [&](size_t fact) {
    return page_text(*scenario, scenario->facts[fact].pages[0]);
  };
  EXPECT_TRUE(absl::StartsWith(text(0), " The backup city for Tarrow is Rome.")) << text(0);
  EXPECT_TRUE(absl::StartsWith(text(1), " The door colour for Halvern is red.")) << text(1);
  EXPECT_EQ(scenario->facts[1].pages[0], scenario->facts[0].pages[0] + 1);
  const std::string instruction = page_text(*scenario, scenario->instruction_pages[0]);
  EXPECT_TRUE(absl::StartsWith(instruction, " The closing word of every answer is tea."))
      << instruction;
}

TEST_F(ScenarioTest, segments_fill_pages_and_follow_each_other) {
  const absl::StatusOr<Scenario> scenario = read(small_scenario());
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  size_t at = 0;
  for (const reference::RegionSpan& span : scenario->spans) {
    EXPECT_EQ(span.begin, at);
    EXPECT_EQ(span.end % kPageTokens, 0u);
    at = span.end;
  }
  EXPECT_EQ(at, scenario->tokens.size());
  EXPECT_EQ(scenario->prefill_tokens, scenario->spans[2].end);
  EXPECT_EQ(scenario->spans[0].region, Region::kSystem);
}

TEST_F(ScenarioTest, a_use_is_told_as_the_step_that_computes_its_first_token) {
  const absl::StatusOr<Scenario> scenario = read(small_scenario());
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_FALSE(scenario->facts[0].used_at_step.has_value());
  ASSERT_TRUE(scenario->facts[1].used_at_step.has_value());
  const size_t position = scenario->prefill_tokens + *scenario->facts[1].used_at_step - 1;
  const std::span<const TokenId> rest = std::span(scenario->tokens).subspan(position);
  EXPECT_TRUE(absl::StartsWith(tokenizer_->decode(rest), " Halvern has a door."));
}

TEST_F(ScenarioTest, a_question_ends_before_its_value) {
  const absl::StatusOr<Scenario> scenario = read(small_scenario());
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const Question& question = scenario->facts[0].question;
  EXPECT_EQ(tokenizer_->decode(question.prefix), "The backup city for Tarrow is");
  EXPECT_EQ(tokenizer_->decode(std::vector{question.options[question.right]}), " Rome");
}

TEST_F(ScenarioTest, wrong_files_are_refused) {
  const std::string good = small_scenario();
  const std::vector<std::pair<std::string, std::string>> changes = {
      {R"("memdecay_scenario": 1)", R"("memdecay_scenario": 2)"},
      {R"("seed": 7)", R"("seed": "seven")"},
      {R"("options": ["milk", "tea"])", R"("options": ["milk", "water"])"},
      {R"("options": ["red", "blue"])", R"("options": ["red", "unpronounceable"])"},
      {R"("options": ["red", "blue"])", R"("options": ["red", "blue", "blue"])"},
      {R"({"fact": 1})", R"({"fact": 0})"},
      {R"({"fact": 1})", R"({"fact": 2})"},
      {R"({"fact": 1})", R"({"use": 1, "text": " Halvern."})"},
      {R"("use": 1, )", ""},
      {R"({"instruction": true})", R"({"text": " Bye."})"},
      {R"("region": "user")", R"("region": "nowhere")"},
      {R"("role": "user")", R"("role": "nobody")"},
      {R"("key": "backup city for Tarrow")",
       R"("key": "one or two or three or four or five or six or seven or eight words")"},
      {kPadding, R"("padding": [" Too short."])"},
  };
  for (const auto& [from, to] : changes) {
    ASSERT_TRUE(absl::StrContains(good, from)) << from;
    const absl::Status status = read(absl::StrReplaceAll(good, {{from, to}})).status();
    EXPECT_EQ(error_code(status), ErrorCode::kInvalidArgument) << from << " → " << to;
  }
  EXPECT_EQ(error_code(read("{").status()), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(load_scenario("/nowhere.json", *tokenizer_, *chat_).status()),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace memdecay::eval
