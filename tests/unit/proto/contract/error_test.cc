// Errors and shared words: names are the vocabulary's, and a detail survives its Status.
#include "proto/contract/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "proto/contract/vocabulary.h"

namespace memdecay {
namespace {

TEST(Error, every_code_has_its_own_name_and_comes_back_from_it) {
  std::set<std::string_view> names;
  for (int i = 0; i < kErrorCodes; ++i) {
    const auto code = static_cast<ErrorCode>(i);
    names.insert(error_name(code));
    EXPECT_EQ(error_from_name(error_name(code)), code);
    EXPECT_EQ(error_code(make_error(code, "asked")), code);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kErrorCodes));
  EXPECT_EQ(error_name(ErrorCode::kPinBudget), "pin_budget");
  EXPECT_EQ(error_name(ErrorCode::kInternal), "internal");
  EXPECT_FALSE(error_from_name("no_such_code").has_value());
}

TEST(Error, a_detail_survives_its_status) {
  const absl::Status status = make_error({.code = ErrorCode::kResourceExhausted,
                                          .asked = "4 pages",
                                          .there = "2 free",
                                          .todo = "unpin pages",
                                          .retry_after_ms = 7});
  const ErrorDetail detail = error_detail(status);
  EXPECT_EQ(detail.code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(detail.asked, "4 pages");
  EXPECT_EQ(detail.there, "2 free");
  EXPECT_EQ(detail.todo, "unpin pages");
  EXPECT_EQ(detail.retry_after_ms, 7);
  EXPECT_EQ(status.message(), "resource_exhausted: 4 pages; 2 free; unpin pages");
}

TEST(Error, foreign_statuses_get_the_closest_code) {
  EXPECT_EQ(error_code(absl::OkStatus()), ErrorCode::kOk);
  EXPECT_EQ(error_code(absl::UnavailableError("x")), ErrorCode::kUnavailable);
  EXPECT_EQ(error_code(absl::CancelledError("x")), ErrorCode::kInternal);
}

TEST(Vocabulary, aliases_of_the_practice_preset_are_regions) {
  EXPECT_EQ(region_from_name("dialogue"), region_id(Region::kUser));
  EXPECT_EQ(region_from_name("reasoning"), region_id(Region::kScratchpad));
  EXPECT_FALSE(region_from_name("nowhere").has_value());
  for (RegionId region = 0; region < kBuiltInRegions; ++region) {
    EXPECT_EQ(region_from_name(region_name(region)), region);
  }
}

}  // namespace
}  // namespace memdecay
