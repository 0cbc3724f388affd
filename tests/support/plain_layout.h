// The layout of an engine that has no model: every field said, none of them true of anything.
// For programs that speak the C interface and care about pages, not about what is in them.
// Thread: a pure function. Not here: what a layout is (client/memdecay.h).
#pragma once

#include "client/memdecay.h"

namespace memdecay::test {

// `group` must outlive what is returned.
inline memdecay_layout plain_layout(const memdecay_layout_group& group, const char* model) {
  memdecay_layout out{};
  out.size = sizeof out;
  out.model = model;
  out.weights_fingerprint = "sha256:1";
  out.revision = "1";
  out.adapter = "none";
  out.tokenizer_fingerprint = "none";
  out.dtype = "f16";
  out.quantization = "none";
  out.scales = "none";
  out.groups = &group;
  out.group_count = 1;
  out.tensor_parallel = 1;
  out.rope_inv_freq_hash = "none";
  out.rope_kind = "none";
  out.rope_attention_factor = 1;
  out.rope_pairing = "none";
  out.producer = model;
  return out;
}

}  // namespace memdecay::test
