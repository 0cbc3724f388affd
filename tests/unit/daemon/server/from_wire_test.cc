// Messages from the wire: bounds are refused by field before the ledger sees anything, and keys are
// what the contract says they are.
// Thread: one.
#include "daemon/server/from_wire.h"

#include <gtest/gtest.h>

#include <limits>
#include <variant>

#include "daemon/base/limits.h"
#include "proto/contract/error.h"
#include "proto/contract/page_key.h"

namespace memdecay::server {
namespace {

constexpr WireRules kRules{.page_tokens = 4};

v1::Layout wire_layout() {
  v1::Layout layout;
  layout.set_model("m");
  layout.set_weights_fingerprint("w");
  layout.set_revision("1");
  layout.set_adapter("none");
  layout.set_tokenizer_fingerprint("t");
  layout.set_dtype("f16");
  layout.set_quantization("none");
  layout.set_scales("none");
  v1::LayoutGroup& group = *layout.add_groups();
  group.set_layers(1);
  group.set_kv_heads(1);
  group.set_head_dim(8);
  group.set_page_tokens(4);
  group.set_packing("token.head.dim");
  group.set_page_bytes(256);
  v1::Rope& rope = *layout.mutable_rope();
  rope.set_inv_freq_hash("none");
  rope.set_kind("none");
  rope.set_attention_factor(1);
  rope.set_pairing("none");
  layout.set_tensor_parallel(1);
  layout.set_producer("test");
  return layout;
}

ErrorCode refusal(const v1::StreamRequest& message) {
  return error_code(event_from_wire(message, {}, kRules).status());
}

TEST(FromWire, message_without_body_is_refused) {
  EXPECT_EQ(refusal(v1::StreamRequest()), ErrorCode::kInvalidArgument);
}

TEST(FromWire, lookup_keys_chain_over_whole_pages) {
  v1::LookupRequest request;
  *request.mutable_layout() = wire_layout();
  for (uint32_t token = 0; token < 10; ++token) request.add_tokens(token);
  request.add_extras("image");
  const auto event = event_from_wire(request, {}, kRules);
  ASSERT_TRUE(event.ok()) << event.status();
  const auto& lookup = std::get<ledger::Lookup>(*event);
  ASSERT_EQ(lookup.keys.size(), 2u);  // the last two tokens are no whole page
  EXPECT_EQ(lookup.tokens.size(), 8u);
  const ExtraKey extra{.kind = "extra", .value = "image"};
  const std::vector<TokenId> first = {0, 1, 2, 3};
  const std::vector<TokenId> second = {4, 5, 6, 7};
  const PageKey key = page_key(lookup.layout.name_space, std::nullopt, first, {&extra, 1});
  EXPECT_EQ(lookup.keys[0], key);
  EXPECT_EQ(lookup.keys[1], page_key(lookup.layout.name_space, key, second, {&extra, 1}));
}

TEST(FromWire, layout_of_another_page_size_is_rejected) {
  v1::Layout layout = wire_layout();
  EXPECT_TRUE(layout_ref(layout, kRules).ok());
  EXPECT_EQ(error_code(layout_ref(layout, {.page_tokens = 16}).status()),
            ErrorCode::kLayoutRejected);
  EXPECT_EQ(error_code(layout_ref(layout, {.page_tokens = 4, .page_bytes = 512}).status()),
            ErrorCode::kLayoutRejected);
  layout.set_dtype("auto");
  EXPECT_EQ(error_detail(layout_ref(layout, kRules).status()).asked, "dtype");
  EXPECT_FALSE(layout_ref(v1::Layout(), kRules).ok());
}

TEST(FromWire, seal_needs_a_token_for_each_position) {
  v1::StreamRequest message;
  message.mutable_seal()->set_pages(2);
  for (uint32_t token = 0; token < 7; ++token) message.mutable_seal()->add_tokens(token);
  EXPECT_EQ(refusal(message), ErrorCode::kInvalidArgument);
  message.mutable_seal()->add_tokens(7);
  EXPECT_EQ(refusal(message), ErrorCode::kOk);
  message.mutable_seal()->add_checksums();
  EXPECT_EQ(refusal(message), ErrorCode::kInvalidArgument);
}

TEST(FromWire, counts_beyond_their_bound_are_refused) {
  v1::StreamRequest extend;
  extend.mutable_extend()->set_pages(base::limits::kPagesARequest + 1);
  EXPECT_EQ(refusal(extend), ErrorCode::kInvalidArgument);
  extend.mutable_extend()->set_pages(0);
  EXPECT_EQ(refusal(extend), ErrorCode::kInvalidArgument);

  v1::StreamRequest tag;
  for (uint32_t i = 0; i <= base::limits::kSpansAMessage; ++i) {
    tag.mutable_tag()->add_spans()->mutable_span()->set_end(1);
  }
  EXPECT_EQ(refusal(tag), ErrorCode::kInvalidArgument);

  v1::StreamRequest open;
  *open.mutable_open()->mutable_layout() = wire_layout();
  open.mutable_open()->set_name(std::string(base::limits::kNameBytes + 1, 'n'));
  EXPECT_EQ(refusal(open), ErrorCode::kInvalidArgument);
  open.mutable_open()->set_name("line\nbreak");
  EXPECT_EQ(refusal(open), ErrorCode::kInvalidArgument);
  open.mutable_open()->set_name("good");
  open.mutable_open()->set_default_region(base::limits::kRegions);
  EXPECT_EQ(refusal(open), ErrorCode::kInvalidArgument);
}

TEST(FromWire, numbers_out_of_their_meaning_are_refused) {
  v1::StreamRequest hint;
  hint.mutable_hint()->mutable_span()->set_end(4);
  for (const double wrong : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    hint.mutable_hint()->set_relevance(wrong);
    EXPECT_EQ(refusal(hint), ErrorCode::kInvalidArgument);
  }
  hint.mutable_hint()->set_relevance(1);
  EXPECT_EQ(refusal(hint), ErrorCode::kOk);

  v1::StreamRequest park;
  park.mutable_park()->set_state(v1::SESSION_STATE_DECODING);
  EXPECT_EQ(refusal(park), ErrorCode::kInvalidArgument);

  v1::StreamRequest pin;
  pin.mutable_pin()->set_pages(1);
  pin.mutable_pin()->set_ttl_ms(-1);
  EXPECT_EQ(refusal(pin), ErrorCode::kInvalidArgument);

  v1::StreamRequest resume;
  *resume.mutable_resume()->mutable_layout() = wire_layout();
  EXPECT_EQ(refusal(resume), ErrorCode::kInvalidArgument);
  resume.mutable_resume()->set_name("s");
  resume.mutable_resume()->set_session(3);
  EXPECT_EQ(refusal(resume), ErrorCode::kInvalidArgument);
}

TEST(FromWire, unspecified_mode_is_the_configured_one) {
  v1::StreamRequest open;
  *open.mutable_open()->mutable_layout() = wire_layout();
  const auto event = event_from_wire(open, {}, {.page_tokens = 4, .mode = Mode::kLossy});
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(std::get<ledger::OpenSession>(*event).mode, Mode::kLossy);
}

}  // namespace
}  // namespace memdecay::server
