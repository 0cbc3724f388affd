// A Llama-family model: its shape and its weights in float32.
//
// Why: everything a decoder multiplies with, checked once at load, so that the decoder itself has
// no error paths for the model.
// Thread: immutable after load; several decoders may share one model.
// Invariants: head_dim is even and a multiple of eight, so are width and ffn; every weight array
// has the size that the shape demands. RoPE pairs neighbours (2i, 2i + 1), as GGUF stores them.
// Not here: computing (decoder.h), text (tokenizer.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "adapters/reference/float_arena.h"
#include "adapters/reference/gguf.h"
#include "adapters/reference/kv_page.h"
#include "adapters/reference/mapped_file.h"
#include "adapters/reference/thread_pool.h"

namespace memdecay::reference {

struct ModelShape {
  size_t layers = 0;
  size_t width = 0;
  size_t heads = 0;
  size_t kv_heads = 0;
  size_t head_dim = 0;
  size_t ffn = 0;
  size_t vocabulary = 0;
  size_t context = 0;  // positions that the rotation table covers
  float epsilon = 0.0f;
  double rope_base = 0.0;
  bool tied = false;  // the head is the embedding

  size_t query_width() const { return heads * head_dim; }
  size_t kv_width() const { return kv_heads * head_dim; }
  size_t qkv_width() const { return query_width() + 2 * kv_width(); }
  KvLayout kv_layout(KvType type, size_t page_tokens = 16) const {
    return {layers, kv_heads, head_dim, page_tokens, type};
  }
};

// Row-major matrices, [rows][width]; joined ones are multiplied in one pass.
struct LayerWeights {
  std::span<float> attention_norm;  // [width]
  std::span<float> qkv;             // [query_width + 2 * kv_width][width]
  std::span<float> attention_out;   // [width][query_width]
  std::span<float> ffn_norm;        // [width]
  std::span<float> gate_up;         // [2 * ffn][width]
  std::span<float> down;            // [width][ffn]
};

// The shape alone: cheap, for tools that only want sizes. unsupported: another architecture or a
// feature this engine does not compute. not_found / invalid_argument: keys missing or impossible.
absl::StatusOr<ModelShape> read_shape(const Gguf& gguf);

// A model file held open. gguf() points into the mapping.
class ModelFile {
 public:
  static absl::StatusOr<ModelFile> open(const std::string& path);
  const Gguf& gguf() const { return gguf_; }
  std::span<const std::byte> bytes() const { return file_.bytes(); }

 private:
  ModelFile(MappedFile file, Gguf gguf) : file_(std::move(file)), gguf_(std::move(gguf)) {}
  MappedFile file_;
  Gguf gguf_;
};

class Model {
 public:
  // Dequantises all weights, in parallel on `pool`. Errors of read_shape, and not_found or
  // invalid_argument for a tensor that is missing or of another shape. The file may be closed
  // afterwards.
  static absl::StatusOr<Model> load(const Gguf& gguf, ThreadPool& pool);

  const ModelShape& shape() const { return shape_; }
  const LayerWeights& layer(size_t index) const { return layers_[index]; }
  std::span<const float> embedding() const { return embedding_; }  // [vocabulary][width]
  std::span<const float> head() const { return head_; }            // [vocabulary][width]
  std::span<const float> output_norm() const { return output_norm_; }
  // cos and sin of position * base^(-2i / head_dim), [context][head_dim / 2].
  std::span<const float> cosines() const { return cosines_; }
  std::span<const float> sines() const { return sines_; }

 private:
  struct Piece;
  Model(ModelShape shape, size_t bytes) : shape_(shape), arena_(bytes) {}
  static std::vector<Piece> pieces_of(const ModelShape& shape);
  void place(std::vector<Piece>& pieces);
  absl::Status read_frequency_factors(const Gguf& gguf);
  void fill_rotations();

  ModelShape shape_;
  FloatArena arena_;
  std::vector<LayerWeights> layers_;
  std::span<float> embedding_;
  std::span<float> head_;
  std::span<float> output_norm_;
  std::span<float> cosines_;
  std::span<float> sines_;
  std::vector<float> frequency_factors_;  // empty: all 1
};

}  // namespace memdecay::reference
