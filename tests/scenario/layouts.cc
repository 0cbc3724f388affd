// See layouts.h. The shape is one layer, one head, and as many dimensions as the page has room for.
#include "tests/scenario/layouts.h"

#include <algorithm>

#include "tests/scenario/values.h"

namespace memdecay::scenario {
namespace {

void take(const Call& call, std::string_view option, std::string& field) {
  if (const auto value = call.option(option)) field = *value;
}

}  // namespace

absl::StatusOr<Layout> make_layout(const Call& call, const LayoutDefaults& defaults) {
  uint64_t page = defaults.page_bytes;
  uint32_t tokens = defaults.page_tokens;
  if (const auto value = call.option("page")) {
    const absl::StatusOr<int64_t> bytes = parse_bytes(*value);
    if (!bytes.ok()) return bytes.status();
    page = static_cast<uint64_t>(*bytes);
  }
  if (const auto value = call.option("page_tokens")) {
    const absl::StatusOr<uint32_t> count = parse_count(*value);
    if (!count.ok()) return count.status();
    tokens = *count;
  }
  Layout layout{.model = "scenario",
                .weights_fingerprint = "w0",
                .revision = "1",
                .adapter = "none",
                .tokenizer_fingerprint = "t0",
                .dtype = "f16",
                .quantization = "none",
                .scales = "none",
                .rope = {.inv_freq_hash = "r0",
                         .kind = "default",
                         .attention_factor = 1,
                         .pairing = "half",
                         .n_rot = 2},
                .tensor_parallel = 1,
                .producer = "scenario"};
  take(call, "layout", layout.model);
  take(call, "weights", layout.weights_fingerprint);
  take(call, "rev", layout.revision);
  take(call, "adapter", layout.adapter);
  take(call, "tokenizer", layout.tokenizer_fingerprint);
  take(call, "dtype", layout.dtype);
  take(call, "quantisation", layout.quantization);
  take(call, "scales", layout.scales);
  take(call, "rope", layout.rope.inv_freq_hash);
  take(call, "producer", layout.producer);
  if (layout.dtype == "fp16") layout.dtype = "f16";
  LayoutGroup group{.layers = 1,
                    .kv_heads = 1,
                    .head_dim = static_cast<uint32_t>(
                        std::clamp<uint64_t>(page / (uint64_t{tokens} * 8 + 1), 1, 65536)),
                    .page_tokens = tokens,
                    .packing = "kd.vd",
                    .window = 0,
                    .page_bytes = page};
  take(call, "packing", group.packing);
  for (const auto& [option, field] :
       {std::pair("window", &group.window), std::pair("tp", &layout.tensor_parallel)}) {
    const auto value = call.option(option);
    if (!value) continue;
    const absl::StatusOr<uint32_t> count = parse_count(*value);
    if (!count.ok()) return count.status();
    *field = *count;
  }
  layout.groups.push_back(group);
  return layout;
}

}  // namespace memdecay::scenario
