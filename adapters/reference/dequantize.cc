// One function a block format; see dequantize.h.
#include "adapters/reference/dequantize.h"

#include <bit>
#include <cstring>

#include "adapters/reference/half.h"

namespace memdecay::reference {
namespace {

uint8_t byte_at(const std::byte* data, size_t index) {
  return std::to_integer<uint8_t>(data[index]);
}

uint16_t word_at(const std::byte* data, size_t offset) {
  uint16_t word = 0;
  std::memcpy(&word, data + offset, sizeof(word));
  return word;
}

float half_at(const std::byte* data, size_t offset) { return float_of_half(word_at(data, offset)); }

void f32_block(const std::byte* block, float* out) { std::memcpy(out, block, sizeof(float)); }

void f16_block(const std::byte* block, float* out) { *out = half_at(block, 0); }

void bf16_block(const std::byte* block, float* out) {
  *out = std::bit_cast<float>(uint32_t{word_at(block, 0)} << 16);
}

// scale, then 32 four-bit values, the low halves first; 8 means zero.
void q4_0_block(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  for (size_t i = 0; i < 16; ++i) {
    const int packed = byte_at(block, 2 + i);
    out[i] = static_cast<float>((packed & 15) - 8) * scale;
    out[i + 16] = static_cast<float>((packed >> 4) - 8) * scale;
  }
}

// scale, minimum, then 32 four-bit values, the low halves first.
void q4_1_block(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  const float minimum = half_at(block, 2);
  for (size_t i = 0; i < 16; ++i) {
    const int packed = byte_at(block, 4 + i);
    out[i] = static_cast<float>(packed & 15) * scale + minimum;
    out[i + 16] = static_cast<float>(packed >> 4) * scale + minimum;
  }
}

// scale, then 32 signed bytes.
void q8_0_block(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  for (size_t i = 0; i < 32; ++i) {
    out[i] = static_cast<float>(static_cast<int8_t>(byte_at(block, 2 + i))) * scale;
  }
}

struct ScaleAndMinimum {
  int scale;
  int minimum;
};

// Eight pairs of six-bit numbers packed in twelve bytes: the upper two bits of the last four pairs
// are kept with the first four.
ScaleAndMinimum q4_k_pair(const std::byte* packed, size_t index) {
  if (index < 4) return {byte_at(packed, index) & 63, byte_at(packed, index + 4) & 63};
  const int low = byte_at(packed, index + 4);
  const int scale_top = byte_at(packed, index - 4) >> 6;
  const int minimum_top = byte_at(packed, index) >> 6;
  return {(low & 15) | (scale_top << 4), (low >> 4) | (minimum_top << 4)};
}

// scale, scale of minima, 12 bytes of pairs, 128 bytes: eight groups of 32 four-bit values.
void q4_k_block(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  const float minimum = half_at(block, 2);
  for (size_t group = 0; group < 8; ++group) {
    const ScaleAndMinimum pair = q4_k_pair(block + 4, group);
    const float d = scale * static_cast<float>(pair.scale);
    const float m = minimum * static_cast<float>(pair.minimum);
    const std::byte* values = block + 16 + (group / 2) * 32;
    for (size_t i = 0; i < 32; ++i) {
      const int packed = byte_at(values, i);
      const int value = group % 2 == 0 ? packed & 15 : packed >> 4;
      out[group * 32 + i] = d * static_cast<float>(value) - m;
    }
  }
}

// 128 bytes of low four bits, 64 bytes of high two bits, 16 signed scales, scale; 32 means zero.
void q6_k_block(const std::byte* block, float* out) {
  const float scale = half_at(block, 208);
  for (size_t part = 0; part < 2; ++part) {
    const std::byte* low = block + part * 64;
    const std::byte* high = block + 128 + part * 32;
    const std::byte* scales = block + 192 + part * 8;
    for (size_t i = 0; i < 128; ++i) {
      const size_t quarter = i / 32;
      const int packed = byte_at(low, (quarter % 2) * 32 + i % 32);
      const int bottom = quarter < 2 ? packed & 15 : packed >> 4;
      const int top = (byte_at(high, i % 32) >> (2 * quarter)) & 3;
      const int group_scale = static_cast<int8_t>(byte_at(scales, i / 16));
      const float d = scale * static_cast<float>(group_scale);
      out[part * 128 + i] = d * static_cast<float>((bottom | (top << 4)) - 32);
    }
  }
}

using BlockFunction = void (*)(const std::byte*, float*);

BlockFunction function_of(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return f32_block;
    case TensorType::kF16:
      return f16_block;
    case TensorType::kBf16:
      return bf16_block;
    case TensorType::kQ4_0:
      return q4_0_block;
    case TensorType::kQ4_1:
      return q4_1_block;
    case TensorType::kQ8_0:
      return q8_0_block;
    case TensorType::kQ4_K:
      return q4_k_block;
    case TensorType::kQ6_K:
      return q6_k_block;
  }
  return nullptr;  // unreachable: parse() admits no other type
}

}  // namespace

void dequantize(const Tensor& tensor, uint64_t first, std::span<float> out) {
  const BlockShape shape = block_shape(tensor.type);
  const std::byte* block = tensor.data.data() + first / shape.elements * shape.bytes;
  const BlockFunction convert = function_of(tensor.type);
  for (size_t at = 0; at < out.size(); at += shape.elements, block += shape.bytes) {
    convert(block, out.data() + at);
  }
}

}  // namespace memdecay::reference
