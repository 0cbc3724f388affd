// Frames of the handle socket: exact round trips, strict bounds, versions.
#include "proto/contract/handle_frames.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/proto/contract/example_layout.h"

namespace memdecay {
namespace {

std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::vector<Frame> one_of_each() {
  return {Hello{.major = 1,
                .minor = 2,
                .role = MemberRole::kWorker,
                .engine_name = "engine é",
                .engine = {7},
                .epoch = {3},
                .token = {1, 2, 3},
                .page_tokens = 16,
                .page_bytes = 368640,
                .pages = 64},
          Welcome{.engine = {7},
                  .epoch = {3},
                  .token = {9, 8},
                  .member = 1,
                  .major = 1,
                  .minor = 0,
                  .death_confirmation = DeathConfirmation::kPidfdOpen,
                  .control_path = "/tmp/control.sock"},
          Refused{.code = ErrorCode::kVersionMismatch, .text = "other major"},
          SlabFd{.slab = {2},
                 .bytes = 1 << 20,
                 .page_bytes = 4096,
                 .slots = 256,
                 .access = SlabAccess::kWritable},
          SlabGone{.slab = {2}},
          TimelineFd{.member = 1},
          ShadowFd{.bytes = 4096},
          Goodbye{},
          HandBack{.slab = {2}, .bytes = 1 << 20}};
}

TEST(HandleFrames, every_type_decodes_to_what_was_encoded) {
  const std::vector<Frame> frames = one_of_each();
  ASSERT_EQ(frames.size(), std::variant_size_v<Frame>);
  for (const Frame& frame : frames) {
    const std::string bytes = *encode_frame(frame);
    const FrameHeader header = *decode_frame_header(as_bytes(bytes));
    EXPECT_EQ(header.type, frame_type(frame));
    EXPECT_EQ(header.payload_bytes, bytes.size() - kFrameHeaderBytes);
    EXPECT_EQ(*decode_frame(header.type, as_bytes(bytes).subspan(kFrameHeaderBytes)), frame);
  }
}

TEST(HandleFrames, the_wire_layout_is_fixed) {
  const std::string bytes = *encode_frame(SlabGone{.slab = {0x01020304}});
  EXPECT_EQ(bytes, std::string("MDH1\x05\0\0\0\x04\0\0\0\x04\x03\x02\x01", 16));
}

TEST(HandleFrames, truncated_and_padded_payloads_are_refused) {
  for (const Frame& frame : one_of_each()) {
    const std::string bytes = *encode_frame(frame) + "x";
    const auto payload = as_bytes(bytes).subspan(kFrameHeaderBytes);
    for (size_t length = 0; length <= payload.size(); ++length) {
      if (length == payload.size() - 1) continue;
      const absl::StatusOr<Frame> decoded = decode_frame(frame_type(frame), payload.first(length));
      EXPECT_EQ(error_code(decoded.status()), ErrorCode::kInvalidArgument) << length;
    }
  }
}

TEST(HandleFrames, headers_of_other_protocols_are_refused) {
  const std::string good = *encode_frame(Goodbye{});
  for (size_t i = 0; i < kFrameHeaderBytes; ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    // A payload of 64 bytes is a possible header; the payload is refused later.
    if (i == 8) continue;
    EXPECT_FALSE(decode_frame_header(as_bytes(bad)).ok()) << i;
  }
  for (size_t length = 0; length < kFrameHeaderBytes; ++length) {
    EXPECT_FALSE(decode_frame_header(as_bytes(good).first(length)).ok());
  }
}

TEST(HandleFrames, values_that_mean_nothing_are_refused_on_both_sides) {
  const std::vector<Frame> bad = {
      Hello{.role = static_cast<MemberRole>(9)},
      Hello{.engine = {1}},
      Hello{.epoch = {1}},
      Hello{.engine_name = std::string(kMaxFrameTextBytes + 1, 'a')},
      Hello{.engine_name = "a\nb"},
      Welcome{},
      Refused{.code = ErrorCode::kOk},
      SlabFd{},
      SlabFd{.slab = {1}, .bytes = 4096, .page_bytes = 4096, .slots = 2},
      SlabFd{.slab = {1},
             .bytes = 4096,
             .page_bytes = 4096,
             .slots = 1,
             .access = static_cast<SlabAccess>(2)},
      SlabGone{},
      ShadowFd{},
      HandBack{},
  };
  for (const Frame& frame : bad) {
    EXPECT_EQ(error_code(encode_frame(frame).status()), ErrorCode::kInvalidArgument)
        << static_cast<int>(frame_type(frame));
  }
}

TEST(HandleFrames, random_bytes_never_crash_and_accepted_ones_are_canonical) {
  SeededNumbers numbers(31);
  const std::vector<Frame> frames = one_of_each();
  int accepted = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string bytes = *encode_frame(frames[numbers.below(frames.size())]);
    if (round % 2 == 0) bytes.resize(numbers.below(bytes.size() + 8), 'r');
    const uint64_t changes = numbers.below(4);
    for (uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
      bytes[numbers.below(bytes.size())] = static_cast<char>(numbers.below(256));
    }
    const absl::StatusOr<FrameHeader> header = decode_frame_header(as_bytes(bytes));
    if (!header.ok()) continue;
    const auto payload = as_bytes(bytes).subspan(kFrameHeaderBytes);
    const absl::StatusOr<Frame> frame = decode_frame(header->type, payload);
    if (!frame.ok()) continue;
    ++accepted;
    const std::string again = *encode_frame(*frame);
    EXPECT_EQ(again.substr(kFrameHeaderBytes), bytes.substr(kFrameHeaderBytes));
  }
  EXPECT_GT(accepted, 1000);
}

TEST(HandleFrames, one_minor_apart_works_and_another_major_is_refused_in_words) {
  EXPECT_EQ(agree_version(kProtocolMajor, kProtocolMinor)->minor, kProtocolMinor);
  EXPECT_EQ(agree_version(kProtocolMajor, kProtocolMinor + 1)->minor, kProtocolMinor);
  EXPECT_EQ(error_code(agree_version(kProtocolMajor, kProtocolMinor + 2).status()),
            ErrorCode::kVersionMismatch);
  const absl::Status other = agree_version(kProtocolMajor + 1, 0).status();
  EXPECT_EQ(error_code(other), ErrorCode::kVersionMismatch);
  EXPECT_NE(other.message().find("protocol 2.0"), absl::string_view::npos) << other;
}

}  // namespace
}  // namespace memdecay
