// Stored page headers: exact round trip, and nothing foreign is read as a page. Timeline fences.
#include "proto/contract/page_header.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "proto/contract/error.h"
#include "proto/contract/timeline_page.h"
#include "tests/unit/proto/contract/example_layout.h"

namespace memdecay {
namespace {

PageHeader exact_header() {
  PageHeader header{.page = 7, .tokens = 16, .page_bytes = 368640, .generation = 3};
  header.space.bytes[0] = 0xaa;
  header.key = PageKey{};
  header.key->bytes[31] = 0xbb;
  header.checksum = {.low = 1, .high = 0xffffffffffffffffull};
  return header;
}

TEST(PageHeader, decodes_what_it_encoded) {
  PageHeader header = exact_header();
  EXPECT_EQ(*decode_page_header(encode_page_header(header)), header);
  header.key.reset();
  header.session = {0x0102030405060708ull};
  EXPECT_EQ(*decode_page_header(encode_page_header(header)), header);
}

TEST(PageHeader, each_foreign_field_is_refused) {
  const size_t places[] = {kPageHeaderMagicAt,         kPageHeaderVersionAt,
                           kPageHeaderKindAt,          kPageHeaderTokensAt + 3,
                           kPageHeaderPageBytesAt + 7, kPageHeaderReservedAt,
                           kPageHeaderChecksumAt - 1};
  for (const size_t place : places) {
    PageHeaderImage image = encode_page_header(exact_header());
    image[place] ^= std::byte{0x55};
    EXPECT_EQ(error_code(decode_page_header(image).status()), ErrorCode::kInvalidArgument) << place;
  }
  const PageHeaderImage image = encode_page_header(exact_header());
  const std::span<const std::byte> bytes(image);
  for (size_t length = 0; length < kPageHeaderBytes; ++length) {
    EXPECT_FALSE(decode_page_header(bytes.first(length)).ok());
  }
}

TEST(PageHeader, random_bytes_never_crash_and_accepted_ones_are_canonical) {
  SeededNumbers numbers(11);
  for (int round = 0; round < 100'000; ++round) {
    PageHeaderImage image = encode_page_header(exact_header());
    const uint64_t changes = 1 + numbers.below(4);
    for (uint64_t i = 0; i < changes; ++i) {
      image[numbers.below(image.size())] = static_cast<std::byte>(numbers.below(256));
    }
    const absl::StatusOr<PageHeader> header = decode_page_header(image);
    if (header.ok()) {
      EXPECT_EQ(encode_page_header(*header), image);
    }
  }
}

TEST(TimelinePage, fences_are_compared_on_a_circle) {
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  EXPECT_TRUE(fence_reached(5, 5));
  EXPECT_TRUE(fence_reached(6, 5));
  EXPECT_FALSE(fence_reached(4, 5));
  EXPECT_TRUE(fence_reached(2, 0xfffffffffffffffeull));  // wrapped around
  EXPECT_FALSE(fence_reached(0xfffffffffffffffeull, 2));
  EXPECT_TRUE(fence_reached(kHalf - 1, 0));
  EXPECT_FALSE(fence_reached(kHalf, 0));
}

TEST(TimelinePage, words_are_independent_and_bounded) {
  alignas(8) std::array<uint64_t, kTimelineWords> page{};
  const TimelineView view(page.data());
  view.store(0, 3);
  view.store(kTimelineWords - 1, 9);
  EXPECT_TRUE(view.reached(0, 3));
  EXPECT_FALSE(view.reached(1, 1));
  EXPECT_EQ(page[kTimelineWords - 1], 9u);
  EXPECT_TRUE(TimelineView::in_range(kTimelineWords - 1));
  EXPECT_FALSE(TimelineView::in_range(kTimelineWords));
}

}  // namespace
}  // namespace memdecay
