// Values of the language and the oracle's bytes.
#include <gtest/gtest.h>

#include "tests/scenario/oracle.h"
#include "tests/scenario/values.h"

namespace memdecay::scenario {
namespace {

TEST(Values, pages) {
  const absl::StatusOr<PageSet> range = parse_pages("S:0..7");
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->session, "S");
  EXPECT_EQ(range->first, 0u);
  EXPECT_EQ(range->last, 7u);
  EXPECT_TRUE(parse_pages("S:*")->all);
  for (const char* wrong : {"S", "S:", ":3", "S:7..3", "S:-1", "S:1.5", "S:a"}) {
    EXPECT_FALSE(parse_pages(wrong).ok()) << wrong;
  }
}

TEST(Values, spans_are_inclusive_and_may_run_backwards) {
  const absl::StatusOr<TokenSpan> span = parse_span("S@24..87", 16);
  ASSERT_TRUE(span.ok());
  EXPECT_EQ(span->span.begin, 24u);
  EXPECT_EQ(span->span.end, 88u);
  EXPECT_EQ(parse_span("S:1..2", 16)->span.end, 48u);
  EXPECT_EQ(parse_span("S@40..20", 16)->span.end, 21u);  // the daemon's to refuse
  EXPECT_FALSE(parse_span("S:*", 16).ok());
}

TEST(Values, durations_and_sizes) {
  EXPECT_EQ(parse_duration("50ms")->nanoseconds, 50'000'000);
  EXPECT_EQ(parse_duration("2s")->nanoseconds, 2'000'000'000);
  EXPECT_EQ(parse_duration("1h")->nanoseconds, 3'600'000'000'000);
  EXPECT_FALSE(parse_duration("5").ok());
  EXPECT_FALSE(parse_duration("soon").ok());
  EXPECT_EQ(*parse_bytes("64KiB"), 65536);
  EXPECT_EQ(*parse_bytes("+16MiB"), 16 << 20);
  EXPECT_FALSE(parse_bytes("100gigs").ok());
}

TEST(Values, relations) {
  EXPECT_TRUE(holds(3, Relation::kEqual, 3));
  EXPECT_FALSE(holds(3, Relation::kLess, 3));
  EXPECT_TRUE(holds(95, Relation::kAbout, 100));
  EXPECT_FALSE(holds(80, Relation::kAbout, 100));
}

TEST(Oracle, a_hole_changes_the_content_of_what_follows) {
  const std::vector<TokenId> tokens = tokens_of("doc", 1, 1, 16);
  const ContentPrint first = content_of(0, tokens_of("doc", 0, 1, 16), "");
  const ContentPrint whole = content_of(extend_past(0, first), tokens, "");
  const ContentPrint holed = content_of(extend_past(0, 0), tokens, "");
  EXPECT_NE(whole, holed);
  EXPECT_EQ(whole, content_of(extend_past(0, first), tokens, ""));
  EXPECT_NE(whole, content_of(extend_past(0, first), tokens, "picture"));
}

TEST(Oracle, tokens_are_a_function_of_key_and_position) {
  const std::vector<TokenId> three = tokens_of("doc", 0, 3, 16);
  const std::vector<TokenId> last = tokens_of("doc", 2, 1, 16);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), three.begin() + 32));
  EXPECT_EQ(three[5], token_of("doc", 5));
  EXPECT_NE(tokens_of("dog", 0, 1, 16), tokens_of("doc", 0, 1, 16));
}

TEST(Oracle, a_shifted_or_truncated_page_shows) {
  const std::string page = pattern(7, 0, 256);
  EXPECT_EQ(pattern(7, 100, 10), page.substr(100, 10));
  EXPECT_TRUE(difference(page, page).empty());
  EXPECT_FALSE(difference(page.substr(1) + "x", page).empty());
  EXPECT_FALSE(difference(page.substr(0, 255), page).empty());
}

}  // namespace
}  // namespace memdecay::scenario
