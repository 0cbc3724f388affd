// IEEE half precision by integer arithmetic: the same bits as the F16C instructions.
//
// Why: weights and KV are stored as halves, and the portable path must agree with AVX2 bit for bit.
// Thread: pure functions. Invariant: round to nearest even; overflow becomes infinity.
// Not here: vectors of halves (kernels_avx2.cc).
#pragma once

#include <bit>
#include <cstdint>

namespace memdecay::reference {

inline float float_of_half(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  }
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

inline uint16_t half_of_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // not a number: quiet, upper part of the payload kept
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) {  // a normal half: re-bias, then round the 13 bits that go
    const uint32_t shifted = magnitude - 0x38000000u;
    return static_cast<uint16_t>(sign | ((shifted + 0xfffu + ((shifted >> 13) & 1u)) >> 13));
  }
  if (magnitude <= 0x33000000u) return static_cast<uint16_t>(sign);
  const uint32_t shift = 126 - (magnitude >> 23);  // 14 to 24
  const uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t kept = fraction >> shift;
  const uint32_t rest = fraction & ((1u << shift) - 1);
  const uint32_t middle = 1u << (shift - 1);
  const uint32_t up = rest > middle || (rest == middle && (kept & 1u) != 0) ? 1 : 0;
  return static_cast<uint16_t>(sign | (kept + up));
}

}  // namespace memdecay::reference
