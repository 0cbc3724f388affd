// The fields of the layout, from the model file; see layout_identity.h.
#include "adapters/reference/layout_identity.h"

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/reference/dequantize.h"
#include "adapters/reference/sampling.h"
#include "proto/contract/text.h"

namespace memdecay::reference {
namespace {

// Order of elements in a page (kv_page.h), and the kernels whose bits they are: both
// implementations of kernels.h add in one order, so they have one name.
constexpr const char* kPacking = "layer.kv.head.token.dim;kernel=fixed-order-lanes8-fma";

std::string hash_text(const std::string& text) {
  return absl::StrCat("sha256:", sha256_hex(std::as_bytes(std::span(text))));
}

void add_framed(std::string& to, std::string_view text) {
  absl::StrAppend(&to, text.size(), ":", as_absl(text), ",");
}

// SHA-256 over the pieces in order and the merges in order, each framed by its length.
absl::StatusOr<std::string> tokenizer_fingerprint(const Gguf& gguf) {
  std::string all;
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.merges"}) {
    const absl::StatusOr<std::span<const std::string_view>> texts = gguf.texts(key);
    if (!texts.ok()) return texts.status();
    absl::StrAppend(&all, key, "=", texts->size(), ";");
    for (const std::string_view text : *texts) add_framed(all, text);
  }
  return hash_text(all);
}

// As the decoder turns pairs: base^(-2i / head_dim), divided by the model's factors if it has any.
std::string inv_freq_hash(const Gguf& gguf, const ModelShape& shape) {
  const size_t half = shape.head_dim / 2;
  std::vector<float> factors(half, 1.0f);
  if (const auto tensor = gguf.tensor("rope_freqs.weight"); tensor.ok()) {
    dequantize(*tensor, 0, factors);
  }
  std::vector<float> frequencies(half);
  for (size_t i = 0; i < half; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(2 * half);
    frequencies[i] = static_cast<float>(std::pow(shape.rope_base, exponent) / double{factors[i]});
  }
  return sha256_hex(std::as_bytes(std::span(frequencies)));
}

std::string text_or(const Gguf& gguf, const std::string& key, std::string otherwise) {
  const auto found = gguf.text(key);
  return found.ok() && !found->empty() ? std::string(*found) : otherwise;
}

}  // namespace

absl::StatusOr<LayoutIdentity> LayoutIdentity::of(const ModelFile& file, const Model& model,
                                                  const KvLayout& kv) {
  const Gguf& gguf = file.gguf();
  absl::StatusOr<std::string> tokenizer = tokenizer_fingerprint(gguf);
  if (!tokenizer.ok()) return tokenizer.status();
  auto texts = std::make_unique<Texts>();
  Texts& t = *texts;
  const std::string weights = sha256_hex(file.bytes());
  t.model = text_or(gguf, "general.name", "unnamed");
  t.weights = absl::StrCat("sha256:", weights);
  t.revision = text_or(gguf, "general.version", weights.substr(0, 12));
  t.tokenizer = *std::move(tokenizer);
  t.inv_freq = inv_freq_hash(gguf, model.shape());
  t.rope_kind = gguf.has_tensor("rope_freqs.weight") ? "factors" : "default";
  t.group = {.layers = static_cast<uint32_t>(kv.layers),
             .kv_heads = static_cast<uint32_t>(kv.kv_heads),
             .head_dim = static_cast<uint32_t>(kv.head_dim),
             .page_tokens = static_cast<uint32_t>(kv.page_tokens),
             .packing = kPacking,
             .window = 0,
             .page_bytes = kv.page_bytes()};
  t.layout = {.size = sizeof(memdecay_layout),
              .model = t.model.c_str(),
              .weights_fingerprint = t.weights.c_str(),
              .revision = t.revision.c_str(),
              .adapter = "none",
              .tokenizer_fingerprint = t.tokenizer.c_str(),
              .dtype = kv.type == KvType::kF16 ? "f16" : "f32",
              .quantization = "none",
              .scales = "none",
              .groups = &t.group,
              .group_count = 1,
              .tensor_parallel = 1,
              .rope_inv_freq_hash = t.inv_freq.c_str(),
              .rope_kind = t.rope_kind.c_str(),
              .rope_attention_factor = 1.0,
              .rope_pairing = "interleaved",
              .rope_n_rot = static_cast<uint32_t>(kv.head_dim),
              .producer = "reference"};
  return LayoutIdentity(std::move(texts));
}

}  // namespace memdecay::reference
