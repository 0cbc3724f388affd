// Conversions; see convert.h. Numbers of the wire that this build does not know become the nearest
// harmless value: an unknown error is internal, an unknown page state a hole.
// Thread: pure functions, any.
#include "client/lib/convert.h"

#include <utility>

namespace memdecay::client {

ErrorDetail error_of(const v1::ErrorDetail& detail) {
  const int number = detail.code();
  const bool known = number > 0 && number < kErrorCodes;
  return {known ? static_cast<ErrorCode>(number) : ErrorCode::kInternal, detail.asked(),
          detail.there(), detail.todo(), detail.retry_after_ms()};
}

SlotRef slot_of(const v1::SlotRef& slot) {
  return {SlabId{slot.slab()}, slot.index(), slot.generation()};
}

PageNews news_of(const v1::PageView& view) {
  const int state = view.state();
  const bool known = state >= 0 && state < kPageStates;
  return {view.page(), known ? static_cast<PageState>(state) : PageState::kHole,
          view.has_slot() ? slot_of(view.slot()) : SlotRef{},
          view.approximate() ? Exactness::kApproximate : Exactness::kExact};
}

absl::StatusOr<v1::Layout> layout_of(const memdecay_layout* layout) {
  const auto refuse = [](const char* what) {
    return make_error(ErrorCode::kInvalidArgument, "a layout", what,
                      "fill in every field: nothing is inferred (proto/README.md, \"Identity\")");
  };
  if (layout == nullptr || layout->groups == nullptr || layout->group_count == 0) {
    return refuse("it has no groups");
  }
  v1::Layout out;
  const std::pair<const char*, std::string*> texts[] = {
      {layout->model, out.mutable_model()},
      {layout->weights_fingerprint, out.mutable_weights_fingerprint()},
      {layout->revision, out.mutable_revision()},
      {layout->adapter, out.mutable_adapter()},
      {layout->tokenizer_fingerprint, out.mutable_tokenizer_fingerprint()},
      {layout->dtype, out.mutable_dtype()},
      {layout->quantization, out.mutable_quantization()},
      {layout->scales, out.mutable_scales()},
      {layout->rope_inv_freq_hash, out.mutable_rope()->mutable_inv_freq_hash()},
      {layout->rope_kind, out.mutable_rope()->mutable_kind()},
      {layout->rope_pairing, out.mutable_rope()->mutable_pairing()},
      {layout->producer, out.mutable_producer()},
  };
  for (const auto& [from, to] : texts) {
    if (from == nullptr) return refuse("one of its texts is NULL");
    *to = from;
  }
  out.mutable_rope()->set_attention_factor(layout->rope_attention_factor);
  out.mutable_rope()->set_n_rot(layout->rope_n_rot);
  out.set_tensor_parallel(layout->tensor_parallel);
  for (uint32_t i = 0; i < layout->group_count; ++i) {
    const memdecay_layout_group& group = layout->groups[i];
    if (group.packing == nullptr) return refuse("a group's packing is NULL");
    v1::LayoutGroup* to = out.add_groups();
    to->set_layers(group.layers);
    to->set_kv_heads(group.kv_heads);
    to->set_head_dim(group.head_dim);
    to->set_page_tokens(group.page_tokens);
    to->set_packing(group.packing);
    to->set_window(group.window);
    to->set_page_bytes(group.page_bytes);
  }
  return out;
}

void set_fence(v1::Fence* out, const memdecay_fence& fence) {
  out->set_member(fence.member);
  out->set_word(fence.word);
  out->set_value(fence.value);
}

v1::TaggedSpan span_of(const memdecay_tagged_span& span) {
  v1::TaggedSpan out;
  out.mutable_span()->set_begin(span.begin);
  out.mutable_span()->set_end(span.end);
  out.set_region(span.region);
  out.set_atomic(span.atomic != 0);
  return out;
}

std::string text_of(const char* text) { return text == nullptr ? std::string() : text; }

}  // namespace memdecay::client
