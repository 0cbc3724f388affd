// Reduction to a small interval, a short series, and the exponent put back as bits.
// Thread: pure functions.
#include "daemon/policy/math.h"

#include <bit>
#include <cstdint>
#include <limits>

#include "proto/contract/check.h"

namespace memdecay::policy {
namespace {

constexpr int kMantissaBits = 52;
constexpr int kExponentBias = 1023;
constexpr uint64_t kMantissaMask = (uint64_t{1} << kMantissaBits) - 1;
constexpr double kLn2 = 0.693147180559945309417232121458;
constexpr double kLog2e = 1.442695040888963407359924681;
constexpr double kSqrt2 = 1.414213562373095048801688724;

double power_of_two(int64_t exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + kExponentBias) << kMantissaBits);
}

}  // namespace

double fixed_exp2(double x) {
  if (x < -1022.0) return 0.0;
  if (x >= 1024.0) return std::numeric_limits<double>::infinity();
  MEMDECAY_CHECK(x == x);
  const int64_t whole = static_cast<int64_t>(x < 0.0 ? x - 0.5 : x + 0.5);
  // |z| <= ln2/2; the first term left out is below 4e-18.
  const double z = (x - static_cast<double>(whole)) * kLn2;
  double sum = 1.0;
  for (int term = 13; term >= 1; --term) sum = 1.0 + sum * z / static_cast<double>(term);
  if (whole > kExponentBias) return sum * power_of_two(whole - 1) * 2.0;
  if (whole < 1 - kExponentBias) return 0.0;
  return sum * power_of_two(whole);
}

double fixed_log2(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> kMantissaBits);
  MEMDECAY_CHECK(exponent > 0 && exponent < 2047);  // positive, normal, finite
  exponent -= kExponentBias;
  double mantissa =
      std::bit_cast<double>((bits & kMantissaMask) | (uint64_t{kExponentBias} << kMantissaBits));
  if (mantissa > kSqrt2) {
    mantissa *= 0.5;
    ++exponent;
  }
  // ln m = 2 artanh(s), |s| <= 0.1716; the first term left out is below 1e-18.
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = s * s;
  double sum = 0.0;
  for (int odd = 23; odd >= 1; odd -= 2) sum = sum * square + 1.0 / static_cast<double>(odd);
  return static_cast<double>(exponent) + 2.0 * s * sum * kLog2e;
}

}  // namespace memdecay::policy
