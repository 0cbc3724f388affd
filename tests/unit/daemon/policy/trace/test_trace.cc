// A trace's lines: the writer's are the documented ones, the parser reads them back, and each way
// in which a line can be wrong is refused with line, reason and remedy.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "daemon/policy/trace/event.h"
#include "daemon/policy/trace/parser.h"
#include "proto/contract/error.h"

namespace memdecay::trace {
namespace {

constexpr const char* kHeader =
    R"({"memdecay_trace":1,"page_tokens":16,"sinks":4,"regions":["system","user"],)"
    R"("started_unix":7})";

Parser parser_with_header() {
  Parser parser("t.jsonl");
  EXPECT_TRUE(parser.take(kHeader, 1).ok());
  return parser;
}

// The refusal of `line` behind a header, empty if it was taken.
std::string refusal(const std::string& line) {
  Parser parser = parser_with_header();
  const auto taken = parser.take(line, 2);
  if (taken.ok()) return "";
  const ErrorDetail detail = error_detail(taken.status());
  EXPECT_EQ(detail.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(detail.asked, "trace t.jsonl, line 2");
  EXPECT_FALSE(detail.todo.empty());
  return detail.there;
}

// Every kind of event, with the line that it is written as.
struct Case {
  Event event;
  const char* line;
};
std::vector<Case> every_kind() {
  return {
      {{0, 1, Opened{.tenant = 1, .mode = "lossy", .policy = "memdecay_n"}},
       R"({"t":0.000,"e":"open","s":1,"tenant":1,"mode":"lossy","policy":"memdecay_n"})"},
      {{0, 3, Opened{.tenant = 1, .mode = "exact", .policy = "lru", .born = Opened::Born::kOld}},
       R"({"t":0.000,"e":"open","s":3,"tenant":1,"mode":"exact","policy":"lru","old":1})"},
      {{1, 1, Sealed{5, 16, {{0, 10}, {1, 6}}, 0x9f3c, 5}},
       R"({"t":0.001,"e":"seal","s":1,"p":5,"n":16,"r":[[0,10],[1,6]],)"
       R"("k":"0000000000009f3c","d":5})"},
      {{1, 1, Sealed{6, 9, {{1, 9}}, {}, {}}},
       R"({"t":0.001,"e":"seal","s":1,"p":6,"n":9,"r":[[1,9]]})"},
      {{20, 1, Tagged{5, {{1, 16}}}}, R"({"t":0.020,"e":"tag","s":1,"p":5,"r":[[1,16]]})"},
      {{1300, 1, Observed{17, 1234, 1, 0.41, 0.02, 0, {{0, 0.01}, {5, 1.23457e-05}}, "L20H3"}},
       R"({"t":1.300,"e":"obs","s":1,"step":17,"q":1234,"nq":1,"sink":0.41,"tail":0.02,"rest":0,)"
       R"("m":[[0,0.01],[5,1.23457e-05]],"c":"L20H3"})"},
      {{1300, 1, Stepped{18}}, R"({"t":1.300,"e":"step","s":1,"step":18})"},
      {{1300, 1, Pinned{{0, 1}}}, R"({"t":1.300,"e":"pin","s":1,"p":[0,1]})"},
      {{1300, 1, Unpinned{{1}}}, R"({"t":1.300,"e":"unpin","s":1,"p":[1]})"},
      {{1300, 1, Left{{3}, "session_budget"}},
       R"({"t":1.300,"e":"out","s":1,"p":[3],"why":"session_budget"})"},
      {{1300, 1, Returned{{3}}}, R"({"t":1.300,"e":"in","s":1,"p":[3]})"},
      {{1300, 1, Became{"waiting_tool"}}, R"({"t":1.300,"e":"state","s":1,"to":"waiting_tool"})"},
      {{1300, 2, Forked{1}}, R"({"t":1.300,"e":"fork","s":2,"of":1})"},
      {{1300, 1, Cut{7}}, R"({"t":1.300,"e":"cut","s":1,"p":7})"},
      {{1300, 1, Looked{{0x9f3c, 2}, 1, Looked::Tail::kPartial}},
       R"({"t":1.300,"e":"look","s":1,"k":["0000000000009f3c","0000000000000002"],)"
       R"("hit":1,"tail":1})"},
      {{1300, 0, Looked{{2}, 0, Looked::Tail::kNone, Looked::Taken::kPeek}},
       R"({"t":1.300,"e":"look","k":["0000000000000002"],"hit":0,"tail":0,"peek":1})"},
      {{60000, 1, Ended{}}, R"({"t":60.000,"e":"end","s":1})"},
      {{60000, 0, Lost{120}}, R"({"t":60.000,"e":"lost","events":120})"},
  };
}

TEST(Trace, EveryKindIsWrittenAsDocumentedAndReadBack) {
  Parser parser = parser_with_header();
  uint64_t number = 2;
  for (const Case& one : every_kind()) {
    EXPECT_EQ(to_line(one.event), one.line);
    const auto read = parser.take(one.line, number++);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_NE(*read, nullptr) << one.line;
    EXPECT_EQ((*read)->what.index(), one.event.what.index());
    EXPECT_EQ((*read)->at_ms, one.event.at_ms);
    EXPECT_EQ((*read)->session, one.event.session);
    EXPECT_EQ(to_line(**read), one.line);  // whatever a kind holds came back
  }
  EXPECT_EQ(number, 2 + std::variant_size_v<What> + 3);  // three kinds in two forms
  EXPECT_EQ(parser.ignored_events() + parser.ignored_fields(), 0u);
}

TEST(Trace, AHeaderIsWrittenAndReadBack) {
  Parser parser("t");
  ASSERT_TRUE(parser.take(kHeader, 1).ok());
  ASSERT_NE(parser.header(), nullptr);
  EXPECT_EQ(parser.header()->regions.size(), 2u);
  EXPECT_EQ(to_line(*parser.header()), kHeader);
  EXPECT_TRUE(Parser::is_header(kHeader));
  EXPECT_FALSE(Parser::is_header(R"({"timestamp":1,"hash_ids":[1]})"));
}

TEST(Trace, NamesThatNeedItAreEscaped) {
  const std::string line = to_line(Event{0, 1, Left{{1}, "a\"b\\c\n"}});
  Parser parser = parser_with_header();
  const auto read = parser.take(line, 2);
  ASSERT_TRUE(read.ok()) << line << read.status();
  EXPECT_EQ(std::get<Left>((*read)->what).why, "a\"b\\c\n");
}

TEST(Trace, UnknownFieldsAndKindsAreIgnoredAndCounted) {
  Parser parser = parser_with_header();
  const auto known = parser.take(
      R"({"t":1,"e":"step","s":1,"step":3,"new":{"deep":[1,{"p":2}]},"other":[["x"]]})", 2);
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(std::get<Stepped>((*known)->what).step, 3u);
  EXPECT_EQ(parser.ignored_fields(), 2u);
  const auto unknown = parser.take(R"({"t":2,"e":"dance","s":1})", 3);
  ASSERT_TRUE(unknown.ok());
  EXPECT_EQ(*unknown, nullptr);
  EXPECT_EQ(parser.ignored_events(), 1u);
  EXPECT_EQ(parser.an_ignored_name(), "dance");
  EXPECT_EQ(*parser.take("  ", 4), nullptr);
}

TEST(Trace, TheFirstLineMustBeAHeaderOfThisVersion) {
  const auto there = [](const char* line) {
    Parser parser("t");
    const auto taken = parser.take(line, 1);
    return taken.ok() ? std::string() : error_detail(taken.status()).there;
  };
  EXPECT_EQ(there(R"({"t":0,"e":"end","s":1})"),
            "the first line is no header: there is no memdecay_trace");
  EXPECT_EQ(there(R"({"memdecay_trace":2})"), "the trace is of version 2");
  EXPECT_EQ(there(R"({"memdecay_trace":1,"page_tokens":0,"sinks":4,"regions":["a"]})"),
            "in the header: page_tokens is 0");
  EXPECT_EQ(there(R"({"memdecay_trace":1,"page_tokens":16,"sinks":4,"regions":[]})"),
            "in the header: it names no regions");
  EXPECT_EQ(there(R"({"memdecay_trace":1,"page_tokens":16,"sinks":4})"),
            "in the header: there is no regions");
}

TEST(Trace, TimeNeverGoesBackAndIsNeverNegative) {
  Parser parser = parser_with_header();
  ASSERT_TRUE(parser.take(R"({"t":2.5,"e":"end","s":1})", 2).ok());
  EXPECT_TRUE(parser.take(R"({"t":2.5,"e":"end","s":2})", 3).ok());
  const auto back = parser.take(R"({"t":2.4,"e":"end","s":3})", 4);
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(error_detail(back.status()).asked, "trace t.jsonl, line 4");
  EXPECT_EQ(error_detail(back.status()).there, "its time is before that of the event above it");
  EXPECT_EQ(refusal(R"({"t":-1,"e":"end","s":1})"), "t is negative: -1");
  EXPECT_EQ(refusal(R"({"t":1e300,"e":"end","s":1})"), "t is beyond this clock: 1e+300");
}

TEST(Trace, WhatIsNoEventIsRefusedWithItsReason) {
  const std::string obs =
      R"({"t":1,"e":"obs","s":1,"step":1,"q":9,"sink":0,"tail":0,"rest":0,"m":)";
  const std::pair<std::string, const char*> cases[] = {
      {"hello", "it is no JSON from character 1 on"},
      {R"({"t":1,"e":"end")", "it is no JSON from character 17 on"},
      {"[1,2]", "the line is a list, not a JSON object"},
      {"12", "the line is a number, not a JSON object"},
      {R"({"e":"end","s":1})", "there is no t"},
      {R"({"t":1,"s":1})", "there is no e"},
      {R"({"t":"1","e":"end"})", "t is not a number"},
      {R"({"t":1,"t":1,"e":"end"})", "t stands there twice"},
      {R"({"t":1,"e":"step","s":-4,"step":1})", "s is negative: -4"},
      {R"({"t":1,"e":"step","s":1.5,"step":1})", "s is not a whole number"},
      {R"({"t":1,"e":"step","s":1})", "there is no step"},
      {R"({"t":1,"e":"seal","s":1,"p":1,"n":16,"r":[[0,8]]})",
       "its runs have 8 tokens and n is 16"},
      {R"({"t":1,"e":"seal","s":1,"p":1,"n":2,"r":[[0,2]],"k":"12"})", "k is not 16 hex digits"},
      {R"({"t":1,"e":"seal","s":1,"p":4294967296,"n":2,"r":[[0,2]]})",
       "p is 4294967296; at most 4294967295"},
      {R"({"t":1,"e":"pin","s":1,"p":[0.5]})", "p holds 0.5, which is no page"},
      {R"({"t":1,"e":"pin","s":1,"p":{"a":1}})", "p is an object"},
      {obs + "[[1,-0.1]]}", "m holds [1,-0.1], which is no page with its mass"},
      {obs + "[[1]]}", "m is not a list of [page, mass]"},
      {obs + "[[1,2],3]}", "m is not a list of [page, mass]"},
      {obs + "[[1,[2]]]}", "m has lists inside its pairs"},
      {obs + "[[1,1e999]]}", "it is no JSON from character 78 on"},
      {R"({"t":1,"e":"obs","s":1,"step":1,"q":9,"sink":-1,"tail":0,"rest":0,"m":[]})",
       "sink is -1; a share of attention is 0 or more"},
      {R"({"t":1,"e":"look","k":["zz"],"hit":0})", "k holds what is not 16 hex digits"},
      {absl::StrCat(R"({"t":1,"e":"state","s":1,"to":")", std::string(257, 'x'), "\"}"),
       "to is longer than 256 characters"},
      {absl::StrCat(R"({"t":1,"e":"end","new":)", std::string(100, '['), std::string(100, ']'),
                    "}"),
       "it is nested deeper than 64"},
  };
  for (const auto& [line, reason] : cases) EXPECT_EQ(refusal(line), reason) << line;
}

}  // namespace
}  // namespace memdecay::trace
