// The parser: words, blocks, loop variables, and what it refuses with the line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/parser.h"
#include "tests/scenario/skips.h"

namespace memdecay::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Script parsed(const std::string& body) {
  const absl::StatusOr<Script> script = parse_script("file.scn", "# memdecay-scenario 1\n" + body);
  EXPECT_TRUE(script.ok()) << script.status();
  return script.ok() ? *script : Script();
}

std::string refusal(const std::string& text) {
  const absl::StatusOr<Script> script = parse_script("file.scn", text);
  EXPECT_FALSE(script.ok());
  return std::string(script.status().message());
}

Call call_of(const std::string& line, const Variables& variables = {}) {
  const Script script = parsed(line);
  static std::vector<Script> kept;  // a call points into its statement
  kept.push_back(script);
  const absl::StatusOr<Call> call = resolve_call(kept.back().statements.at(0), variables);
  EXPECT_TRUE(call.ok()) << call.status();
  return call.ok() ? *call : Call();
}

TEST(Parser, words_end_at_blanks_and_comments) {
  EXPECT_THAT(split_words("fill  S 4 key=doc1   # a comment"),
              ElementsAre("fill", "S", "4", "key=doc1"));
}

TEST(Parser, labels_belong_to_their_metric) {
  EXPECT_THAT(split_words("expect stat restores_total{outcome=ok, source=host} > 0"),
              ElementsAre("expect", "stat", "restores_total{outcome=ok,source=host}", ">", "0"));
}

TEST(Parser, blocks_may_stand_in_one_line_or_span_several) {
  const Script one = parsed("daemon device=4\nrepeat 3 as i { settle ; tick 1s }\n");
  ASSERT_EQ(one.statements.size(), 2u);
  EXPECT_EQ(one.statements[1].block, Block::kRepeat);
  EXPECT_EQ(one.statements[1].variable, "i");
  EXPECT_EQ(one.statements[1].body.size(), 2u);
  const Script many =
      parsed("daemon device=4\nparallel {\n  settle\n  repeat 2 {\n tick 1s\n }\n}\n");
  ASSERT_EQ(many.statements[1].body.size(), 2u);
  EXPECT_EQ(many.statements[1].body[1].body.size(), 1u);
  EXPECT_EQ(many.statements[1].body[1].line, 5);
}

TEST(Parser, refuses_with_the_line) {
  EXPECT_THAT(refusal("fill S 4\n"), HasSubstr("file.scn:1"));
  EXPECT_THAT(refusal("# memdecay-scenario 1\nsettle\nfrobnicate S\n"),
              HasSubstr("file.scn:3: unknown statement 'frobnicate'"));
  EXPECT_THAT(refusal("# memdecay-scenario 1\nfill S 4 colour=red\n"),
              HasSubstr("unknown option 'colour'"));
  EXPECT_THAT(refusal("# memdecay-scenario 1\nexpect wonders S\n"),
              HasSubstr("unknown expectation 'wonders'"));
  EXPECT_THAT(refusal("# memdecay-scenario 1\nrepeat 3 {\nsettle\n"), HasSubstr("still open"));
  EXPECT_THAT(refusal("# memdecay-scenario 1\n}\n"), HasSubstr("} without {"));
  EXPECT_THAT(refusal("# memdecay-scenario 1\nrepeat 3\n"), HasSubstr("needs a block"));
  EXPECT_THAT(refusal("# memdecay-scenario 2\n"), HasSubstr("first line"));
}

TEST(Parser, call_sorts_its_words) {
  const Call call = call_of("acquire E2 key=doc pages=4 as L -> 3 missing=3 pending\n");
  EXPECT_EQ(call.verb, "acquire");
  EXPECT_THAT(call.arguments, ElementsAre("E2"));
  EXPECT_EQ(call.option("key"), "doc");
  EXPECT_EQ(call.as, "L");
  EXPECT_TRUE(call.has_answer);
  EXPECT_THAT(call.answer, ElementsAre("3", "missing=3", "pending"));
}

TEST(Parser, failures_are_told_apart) {
  EXPECT_EQ(call_of("settle\n").failure.kind, ExpectedFailure::Kind::kNone);
  EXPECT_EQ(call_of("evict S:0 !?\n").failure.kind, ExpectedFailure::Kind::kAny);
  EXPECT_EQ(call_of("evict S:0 !busy\n").failure.code, "busy");
  const Script wrong = parsed("evict S:0 !bussy\n");
  EXPECT_FALSE(resolve_call(wrong.statements[0], {}).ok());
}

TEST(Parser, variables_reach_every_word) {
  const Variables i = {{"i", 5}};
  EXPECT_EQ(*substitute("S$i", i), "S5");
  EXPECT_EQ(*substitute("S:$i..$i+3", i), "S:5..8");
  EXPECT_EQ(*substitute("S$(i%3)", i), "S2");
  EXPECT_EQ(*substitute("$i*i", {{"i", 4}}), "4*i");
  EXPECT_EQ(*substitute("$i*$i", i), "25");
  EXPECT_EQ(*substitute("$(i*i*7%3)", i), "1");
  EXPECT_EQ(*substitute("k$i-b", i), "k5-b");
  EXPECT_EQ(*substitute("$(2*i+1)x", i), "11x");
  EXPECT_EQ(*substitute("$((i+2)%4)..$((i+2)%4+3)", i), "3..6");
  EXPECT_FALSE(substitute("$j", i).ok());
  EXPECT_FALSE(substitute("$(i/0)", i).ok());
  EXPECT_FALSE(substitute("$(i", i).ok());
}

TEST(Parser, audit_interval_and_title_come_from_comments) {
  const Script script = parsed("# F01: a rule\n# audit=500\nsettle\n");
  EXPECT_EQ(script.audit_every, 500);
  EXPECT_EQ(script.title, "F01: a rule");
}

TEST(Skips, entries_name_files_or_ids) {
  const auto skips = parse_skips("# comment\nF57 no remote\nL/F23_rss.scn [real] too slow\n");
  ASSERT_TRUE(skips.ok());
  EXPECT_NE(find_skip(*skips, "x/N/F57_flaps.scn", WorldKind::kSim), nullptr);
  EXPECT_EQ(find_skip(*skips, "x/N/F5_flaps.scn", WorldKind::kSim), nullptr);
  EXPECT_EQ(find_skip(*skips, "a/L/F23_rss.scn", WorldKind::kSim), nullptr);
  EXPECT_NE(find_skip(*skips, "a/L/F23_rss.scn", WorldKind::kReal), nullptr);
  EXPECT_FALSE(parse_skips("F57\n").ok());
}

}  // namespace
}  // namespace memdecay::scenario
