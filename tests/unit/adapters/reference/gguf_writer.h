// Writes GGUF files into memory, for tests that need no real model.
//
// tiny_model_gguf() is a whole Llama-family model with random weights and a byte-level vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/reference/gguf.h"
#include "adapters/reference/half.h"

namespace memdecay::reference {

class GgufWriter {
 public:
  void text(std::string_view key, std::string_view value) {
    begin(key, 8);
    put_string(metadata_, value);
  }
  void integer(std::string_view key, uint32_t value) {
    begin(key, 4);
    put(metadata_, value);
  }
  void real(std::string_view key, float value) {
    begin(key, 6);
    put(metadata_, value);
  }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    begin(key, 9);
    put(metadata_, uint32_t{8});
    put(metadata_, uint64_t{values.size()});
    for (const std::string& value : values) put_string(metadata_, value);
  }
  void integers(std::string_view key, const std::vector<int32_t>& values) {
    begin(key, 9);
    put(metadata_, uint32_t{5});
    put(metadata_, uint64_t{values.size()});
    for (const int32_t value : values) put(metadata_, value);
  }
  void tensor(std::string_view name, uint32_t type, const std::vector<uint64_t>& sizes,
              const std::vector<std::byte>& data) {
    ++tensors_;
    put_string(table_, name);
    put(table_, static_cast<uint32_t>(sizes.size()));
    for (const uint64_t size : sizes) put(table_, size);
    put(table_, type);
    data_.resize((data_.size() + 31) / 32 * 32);
    put(table_, uint64_t{data_.size()});
    data_.insert(data_.end(), data.begin(), data.end());
  }

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out;
    put(out, uint32_t{0x46554747});
    put(out, version);
    put(out, tensors_);
    put(out, keys_);
    out.insert(out.end(), metadata_.begin(), metadata_.end());
    out.insert(out.end(), table_.begin(), table_.end());
    out.resize((out.size() + 31) / 32 * 32);
    out.insert(out.end(), data_.begin(), data_.end());
    return out;
  }

  uint32_t version = 3;

 private:
  using Bytes = std::vector<std::byte>;

  template <typename T>
  static void put(Bytes& to, T value) {
    const auto* at = reinterpret_cast<const std::byte*>(&value);
    to.insert(to.end(), at, at + sizeof(value));
  }
  static void put_string(Bytes& to, std::string_view value) {
    put(to, uint64_t{value.size()});
    const auto* at = reinterpret_cast<const std::byte*>(value.data());
    to.insert(to.end(), at, at + value.size());
  }
  void begin(std::string_view key, uint32_t type) {
    ++keys_;
    put_string(metadata_, key);
    put(metadata_, type);
  }

  Bytes metadata_;
  Bytes table_;
  Bytes data_;
  uint64_t keys_ = 0;
  uint64_t tensors_ = 0;
};

// The same numbers on every machine.
class Noise {
 public:
  explicit Noise(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33);
  }
  float between(float low, float high) {
    return low + (high - low) * static_cast<float>(next() % 65536) / 65536.0f;
  }

 private:
  uint64_t state_;
};

struct TinyModel {
  std::string architecture = "llama";
  uint32_t layers = 2;
  uint32_t width = 64;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t ffn = 96;
  uint32_t context = 512;
  bool with_vocabulary = true;
  bool tied = true;
  TensorType linear = TensorType::kF16;
  std::string left_out;  // a tensor that is not written

  uint32_t vocabulary() const { return with_vocabulary ? 262 : 8; }
};

// Random values of the given type; scales are small, so that activations stay near one.
std::vector<std::byte> random_tensor(Noise& noise, TensorType type, size_t elements);
std::vector<std::byte> tiny_model_gguf(const TinyModel& model);

}  // namespace memdecay::reference
