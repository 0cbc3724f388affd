// Laying out a model's weights and filling them from a GGUF file.
#include "adapters/reference/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "adapters/reference/dequantize.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::reference {
namespace {

// Work items when weights are dequantised; a multiple of every block size.
constexpr size_t kSliceElements = 1 << 18;

absl::StatusOr<Tensor> tensor_of_shape(const Gguf& gguf, const std::string& name, size_t row,
                                       size_t rows) {
  absl::StatusOr<Tensor> tensor = gguf.tensor(name);
  if (!tensor.ok()) return tensor.status();
  if (tensor->row != row || tensor->rows != rows) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("tensor ", name, " is ", tensor->rows, " x ", tensor->row),
                      absl::StrCat("the model's shape asks for ", rows, " x ", row));
  }
  return tensor;
}

struct Slice {
  const Tensor* tensor;
  uint64_t first;
  std::span<float> out;
};

size_t arena_bytes(const ModelShape& shape) {
  const auto bytes = [](size_t count) { return FloatArena::footprint(count); };
  const size_t layer = 2 * bytes(shape.width) + bytes(shape.qkv_width() * shape.width) +
                       bytes(shape.width * shape.query_width()) +
                       bytes(2 * shape.ffn * shape.width) + bytes(shape.width * shape.ffn);
  const size_t table = bytes(shape.vocabulary * shape.width);
  const size_t rotations = 2 * bytes(shape.context * shape.head_dim / 2);
  return shape.layers * layer + table * (shape.tied ? 1 : 2) + bytes(shape.width) + rotations;
}

}  // namespace

absl::StatusOr<ModelFile> ModelFile::open(const std::string& path) {
  absl::StatusOr<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<Gguf> gguf = Gguf::parse(file->bytes());
  if (!gguf.ok()) return gguf.status();
  return ModelFile(*std::move(file), *std::move(gguf));
}

// A tensor of the file and the place of its floats.
struct Model::Piece {
  std::string name;
  size_t row;
  size_t rows;
  std::span<float> out;
};

std::vector<Model::Piece> Model::pieces_of(const ModelShape& shape) {
  const ModelShape& s = shape;
  std::vector<Piece> pieces;
  pieces.push_back({"token_embd.weight", s.width, s.vocabulary, {}});
  if (!s.tied) pieces.push_back({"output.weight", s.width, s.vocabulary, {}});
  pieces.push_back({"output_norm.weight", s.width, 1, {}});
  for (size_t i = 0; i < s.layers; ++i) {
    const auto add = [&](const char* name, size_t row, size_t rows) {
      pieces.push_back({absl::StrCat("blk.", i, ".", name, ".weight"), row, rows, {}});
    };
    add("attn_norm", s.width, 1);
    add("attn_q", s.width, s.query_width());
    add("attn_k", s.width, s.kv_width());
    add("attn_v", s.width, s.kv_width());
    add("attn_output", s.query_width(), s.width);
    add("ffn_norm", s.width, 1);
    add("ffn_gate", s.width, s.ffn);
    add("ffn_up", s.width, s.ffn);
    add("ffn_down", s.ffn, s.width);
  }
  return pieces;
}

// Gives every piece its floats, in the order of pieces_of().
void Model::place(std::vector<Piece>& pieces) {
  const ModelShape& s = shape_;
  size_t next = 0;
  const auto put = [&](std::span<float> out) {
    MEMDECAY_CHECK(out.size() == pieces[next].row * pieces[next].rows);
    pieces[next++].out = out;
  };
  const auto take = [&](size_t count) {
    const std::span<float> out = arena_.take(count);
    put(out);
    return out;
  };
  const std::span<float> embedding = take(s.vocabulary * s.width);
  embedding_ = embedding;
  head_ = s.tied ? embedding : take(s.vocabulary * s.width);
  output_norm_ = take(s.width);
  const size_t query = s.query_width() * s.width;
  const size_t kv = s.kv_width() * s.width;
  const size_t half = s.ffn * s.width;
  for (size_t i = 0; i < s.layers; ++i) {
    LayerWeights layer;
    layer.attention_norm = take(s.width);
    layer.qkv = arena_.take(query + 2 * kv);
    put(layer.qkv.subspan(0, query));
    put(layer.qkv.subspan(query, kv));
    put(layer.qkv.subspan(query + kv, kv));
    layer.attention_out = take(s.width * s.query_width());
    layer.ffn_norm = take(s.width);
    layer.gate_up = arena_.take(2 * half);
    put(layer.gate_up.subspan(0, half));
    put(layer.gate_up.subspan(half, half));
    layer.down = take(s.width * s.ffn);
    layers_.push_back(layer);
  }
}

absl::StatusOr<Model> Model::load(const Gguf& gguf, ThreadPool& pool) {
  absl::StatusOr<ModelShape> shape = read_shape(gguf);
  if (!shape.ok()) return shape.status();
  std::vector<Piece> pieces = pieces_of(*shape);
  std::vector<Tensor> tensors;
  for (const Piece& piece : pieces) {
    absl::StatusOr<Tensor> tensor = tensor_of_shape(gguf, piece.name, piece.row, piece.rows);
    if (!tensor.ok()) return tensor.status();
    tensors.push_back(*tensor);
  }
  // Only now is memory taken: what the metadata claims has been found in the file.
  Model model(*shape, arena_bytes(*shape));
  model.place(pieces);
  if (absl::Status status = model.read_frequency_factors(gguf); !status.ok()) return status;
  std::vector<Slice> slices;
  for (size_t i = 0; i < pieces.size(); ++i) {
    for (size_t at = 0; at < pieces[i].out.size(); at += kSliceElements) {
      const size_t size = std::min(kSliceElements, pieces[i].out.size() - at);
      slices.push_back({&tensors[i], at, pieces[i].out.subspan(at, size)});
    }
  }
  if (slices.size() > ThreadPool::kMaxItems) {
    return make_error(ErrorCode::kUnsupported,
                      absl::StrCat("a model of ", slices.size(), " slices"));
  }
  pool.run(static_cast<uint32_t>(slices.size()), [&](uint32_t item, int) {
    dequantize(*slices[item].tensor, slices[item].first, slices[item].out);
  });
  model.fill_rotations();
  return model;
}

// Llama 3 stores one divisor a frequency instead of a scaling rule.
absl::Status Model::read_frequency_factors(const Gguf& gguf) {
  if (!gguf.has_tensor("rope_freqs.weight")) return absl::OkStatus();
  absl::StatusOr<Tensor> tensor =
      tensor_of_shape(gguf, "rope_freqs.weight", shape_.head_dim / 2, 1);
  if (!tensor.ok()) return tensor.status();
  frequency_factors_.resize(shape_.head_dim / 2);
  dequantize(*tensor, 0, frequency_factors_);
  for (const float factor : frequency_factors_) {
    if (!(factor > 0.0f)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "tensor rope_freqs.weight holds a factor <= 0");
    }
  }
  return absl::OkStatus();
}

void Model::fill_rotations() {
  const size_t half = shape_.head_dim / 2;
  cosines_ = arena_.take(shape_.context * half);
  sines_ = arena_.take(shape_.context * half);
  for (size_t i = 0; i < half; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(2 * half);
    const double factor = frequency_factors_.empty() ? 1.0 : double{frequency_factors_[i]};
    const double frequency = std::pow(shape_.rope_base, exponent) / factor;
    for (size_t position = 0; position < shape_.context; ++position) {
      const double angle = static_cast<double>(position) * frequency;
      cosines_[position * half + i] = static_cast<float>(std::cos(angle));
      sines_[position * half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

}  // namespace memdecay::reference
