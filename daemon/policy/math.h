// exp2 and log2 with the same bits everywhere. libm promises accuracy, not bits: two versions of
// it, or one with a vector variant, may order two pages differently. These use only +, -, *, / on
// doubles in a fixed order (the build forbids fused multiply-adds), so GCC, Clang and every x86-64
// machine agree. Relative error below 1e-15 (tested against libm at 1e-12).
// Thread: pure functions. Not here: anything that only orders integers.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "proto/contract/check.h"

namespace memdecay::policy {

inline constexpr double kLn2 = 0.693147180559945309417232121458;

namespace math_detail {

inline constexpr int kMantissaBits = 52;
inline constexpr int kExponentBias = 1023;
inline constexpr uint64_t kMantissaMask = (uint64_t{1} << kMantissaBits) - 1;
inline constexpr double kLog2e = 1.442695040888963407359924681;
inline constexpr double kSqrt2 = 1.414213562373095048801688724;

// 1/23, 1/21, …, 1: kept, since a division costs more than the rest of a term.
inline constexpr std::array<double, 12> kOddReciprocals = [] {
  std::array<double, 12> values{};
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0 / static_cast<double>(23 - 2 * i);
  return values;
}();

}  // namespace math_detail

// 2^x. Results below the smallest normal number are 0 (no denormal stalls); above the largest, inf.
double fixed_exp2(double x);

// log2(x) for finite x > 0 (normal numbers; anything else is a bug of the caller). Inline, since an
// observation takes one for every page.
inline double fixed_log2(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> math_detail::kMantissaBits);
  MEMDECAY_CHECK(exponent > 0 && exponent < 2047);  // positive, normal, finite
  exponent -= math_detail::kExponentBias;
  double mantissa =
      std::bit_cast<double>((bits & math_detail::kMantissaMask) |
                            (uint64_t{math_detail::kExponentBias} << math_detail::kMantissaBits));
  if (mantissa > math_detail::kSqrt2) {
    mantissa *= 0.5;
    ++exponent;
  }
  // ln m = 2 artanh(s), |s| <= 0.1716; the first term left out is below 1e-18.
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = s * s;
  double sum = 0.0;
  for (const double reciprocal : math_detail::kOddReciprocals) sum = sum * square + reciprocal;
  return static_cast<double>(exponent) + 2.0 * s * sum * math_detail::kLog2e;
}

// A decaying sum that is as good as 0 becomes 0 before it is a denormal number.
inline double without_dust(double x) { return x < 0x1p-600 ? 0.0 : x; }

}  // namespace memdecay::policy
