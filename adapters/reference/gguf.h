// GGUF version 3, read in place: the metadata and the tensor table of a model file.
//
// Why: one container carries weights, hyper-parameters and vocabulary; it comes from outside, so
// every offset, count and length is checked against the bytes that are really there.
// Thread: immutable after parse(); any thread may read.
// Invariants: every view and every tensor's data lies inside the bytes given to parse(); names are
// unique. The caller keeps those bytes alive.
// Not here: turning quantised blocks into floats (dequantize.h), what the keys mean (model.h).
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace memdecay::reference {

// Element types by their number in the file. Others are refused by name of their number.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ6_K = 14,
  kBf16 = 30,
};

// The shape of a block: `elements` values are stored in `bytes` bytes. {0, 0} for an unknown type.
struct BlockShape {
  uint32_t elements = 0;
  uint32_t bytes = 0;
};
BlockShape block_shape(TensorType type);

struct Tensor {
  TensorType type = TensorType::kF32;
  uint64_t row = 0;   // elements in a row (the fastest dimension)
  uint64_t rows = 1;  // all other dimensions together
  std::span<const std::byte> data;

  uint64_t elements() const { return row * rows; }
};

class Gguf {
 public:
  using Value =
      std::variant<uint64_t, int64_t, double, bool, std::string_view, std::vector<std::string_view>,
                   std::vector<int64_t>, std::vector<double>>;
  using Values = absl::flat_hash_map<std::string, Value>;
  using Tensors = absl::flat_hash_map<std::string, Tensor>;

  // data_loss: the file ends early. invalid_argument: not a GGUF file, or one that contradicts
  // itself. unsupported: another version, another byte order or an element type not listed above.
  static absl::StatusOr<Gguf> parse(std::span<const std::byte> bytes);

  // Each returns not_found for a missing key and invalid_argument for a key of another type.
  absl::StatusOr<uint64_t> unsigned_value(const std::string& key) const;
  absl::StatusOr<double> number(const std::string& key) const;
  absl::StatusOr<std::string_view> text(const std::string& key) const;
  absl::StatusOr<std::span<const std::string_view>> texts(const std::string& key) const;
  absl::StatusOr<std::span<const int64_t>> integers(const std::string& key) const;
  bool has_key(const std::string& key) const { return values_.contains(key); }

  // not_found when there is no such tensor.
  absl::StatusOr<Tensor> tensor(const std::string& name) const;
  bool has_tensor(const std::string& name) const { return tensors_.contains(name); }
  size_t tensor_count() const { return tensors_.size(); }

 private:
  Gguf(Values values, Tensors tensors);
  absl::StatusOr<const Value*> find(const std::string& key) const;

  Values values_;
  Tensors tensors_;
};

}  // namespace memdecay::reference
