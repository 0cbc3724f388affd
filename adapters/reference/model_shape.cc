// Reading a Llama-family model's shape from GGUF metadata, refusing what is not computed here.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "adapters/reference/model.h"
#include "proto/contract/error.h"

namespace memdecay::reference {
namespace {

constexpr uint64_t kMaxLayers = 1024;
constexpr uint64_t kMaxWidth = 1 << 16;
constexpr uint64_t kMaxHeads = 1024;
constexpr uint64_t kMaxVocabulary = 1 << 20;
constexpr uint64_t kMaxContext = 1 << 15;  // the rotation table is laid out for all positions

absl::Status unsupported(std::string what) {
  return make_error(ErrorCode::kUnsupported, std::move(what),
                    "the reference engine computes plain Llama-family models",
                    "use a GGUF of architecture llama, such as SmolLM2-135M-Instruct");
}

// Reads one size into place; the bound keeps products of sizes far from overflow.
class ShapeReader {
 public:
  explicit ShapeReader(const Gguf& gguf) : gguf_(gguf) {}

  size_t size(const std::string& key, uint64_t limit) {
    absl::StatusOr<uint64_t> value = gguf_.unsigned_value(key);
    if (!value.ok()) return fail(value.status());
    if (*value == 0 || *value > limit) {
      return fail(make_error(ErrorCode::kInvalidArgument,
                             absl::StrCat("metadata key ", key, " is ", *value),
                             absl::StrCat("it must be from 1 to ", limit)));
    }
    return static_cast<size_t>(*value);
  }

  double number(const std::string& key) {
    absl::StatusOr<double> value = gguf_.number(key);
    if (value.ok() && *value > 0.0) return *value;
    if (value.ok()) {
      fail(make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("metadata key ", key, " is ", *value), "it must be positive"));
    } else {
      fail(value.status());
    }
    return 0.0;
  }

  const absl::Status& status() const { return status_; }

 private:
  size_t fail(const absl::Status& status) {
    if (status_.ok()) status_ = status;
    return 0;
  }

  const Gguf& gguf_;
  absl::Status status_;
};

absl::Status check_features(const Gguf& gguf, const ModelShape& shape) {
  if (gguf.has_key("llama.expert_count")) {
    absl::StatusOr<uint64_t> experts = gguf.unsigned_value("llama.expert_count");
    if (!experts.ok() || *experts > 0) return unsupported("a mixture of experts");
  }
  if (gguf.has_key("llama.rope.scaling.type")) {
    absl::StatusOr<std::string_view> scaling = gguf.text("llama.rope.scaling.type");
    if (!scaling.ok()) return scaling.status();
    if (*scaling != "none") {
      return unsupported(absl::StrCat("RoPE scaling '", std::string(*scaling), "'"));
    }
  }
  for (const char* key : {"llama.rope.dimension_count", "llama.attention.value_length"}) {
    if (!gguf.has_key(key)) continue;
    absl::StatusOr<uint64_t> value = gguf.unsigned_value(key);
    if (!value.ok()) return value.status();
    if (*value != shape.head_dim) {
      return unsupported(
          absl::StrCat(key, " ", *value, " with heads of ", shape.head_dim, " elements"));
    }
  }
  for (const char* name : {"blk.0.attn_q.bias", "blk.0.attn_k.bias", "blk.0.attn_q_norm.weight"}) {
    if (gguf.has_tensor(name)) return unsupported(absl::StrCat("a model with tensor ", name));
  }
  if (shape.width % 8 != 0 || shape.ffn % 8 != 0 || shape.head_dim % 8 != 0) {
    return unsupported(absl::StrCat("width ", shape.width, ", feed-forward ", shape.ffn,
                                    ", head size ", shape.head_dim,
                                    ": all must be multiples of 8"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelShape> read_shape(const Gguf& gguf) {
  absl::StatusOr<std::string_view> architecture = gguf.text("general.architecture");
  if (!architecture.ok()) return architecture.status();
  if (*architecture != "llama") {
    return unsupported(absl::StrCat("architecture '", std::string(*architecture), "'"));
  }
  ShapeReader reader(gguf);
  ModelShape shape;
  shape.layers = reader.size("llama.block_count", kMaxLayers);
  shape.width = reader.size("llama.embedding_length", kMaxWidth);
  shape.ffn = reader.size("llama.feed_forward_length", kMaxWidth);
  shape.heads = reader.size("llama.attention.head_count", kMaxHeads);
  shape.kv_heads = gguf.has_key("llama.attention.head_count_kv")
                       ? reader.size("llama.attention.head_count_kv", kMaxHeads)
                       : shape.heads;
  shape.context = reader.size("llama.context_length", uint64_t{1} << 32);
  shape.context = std::min<size_t>(shape.context, kMaxContext);
  shape.epsilon = static_cast<float>(reader.number("llama.attention.layer_norm_rms_epsilon"));
  shape.rope_base =
      gguf.has_key("llama.rope.freq_base") ? reader.number("llama.rope.freq_base") : 10000.0;
  if (!reader.status().ok()) return reader.status();
  if (shape.width % shape.heads != 0 || shape.heads % shape.kv_heads != 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat(shape.width, " elements in ", shape.heads, " heads over ",
                                   shape.kv_heads, " KV heads"),
                      "each must be a multiple of the next");
  }
  shape.head_dim = gguf.has_key("llama.attention.key_length")
                       ? reader.size("llama.attention.key_length", kMaxWidth)
                       : shape.width / shape.heads;
  if (!reader.status().ok()) return reader.status();
  absl::StatusOr<Tensor> embedding = gguf.tensor("token_embd.weight");
  if (!embedding.ok()) return embedding.status();
  if (embedding->rows > kMaxVocabulary) {
    return unsupported(absl::StrCat("a vocabulary of ", embedding->rows));
  }
  shape.vocabulary = static_cast<size_t>(embedding->rows);
  shape.tied = !gguf.has_tensor("output.weight");
  if (absl::Status status = check_features(gguf, shape); !status.ok()) return status;
  return shape;
}

}  // namespace memdecay::reference
