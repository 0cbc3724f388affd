// Reduction to a small interval, a short series, and the exponent put back as bits.
// Thread: pure functions.
#include "daemon/policy/math.h"

#include <bit>
#include <cstdint>
#include <limits>

#include "proto/contract/check.h"

namespace memdecay::policy {
namespace {

using math_detail::kExponentBias;
using math_detail::kMantissaBits;

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

}  // namespace memdecay::policy
