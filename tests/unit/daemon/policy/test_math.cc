// fixed_exp2 and fixed_log2: close to libm, and the same bits with every compiler. The bits come
// from a plain table below: a build that rounds differently fails here. Thread: one.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "daemon/policy/math.h"

namespace memdecay::policy {
namespace {

double relative_error(double actual, double expected) {
  return std::abs(actual - expected) / std::abs(expected);
}

TEST(FixedMath, exp2_is_within_1e12_of_libm) {
  std::mt19937_64 chance(1);
  std::uniform_real_distribution<double> wide(-1022.0, 1023.99);
  std::uniform_real_distribution<double> narrow(-4.0, 4.0);
  double worst = 0.0;
  for (int i = 0; i < 200000; ++i) {
    for (double x : {wide(chance), narrow(chance)}) {
      worst = std::max(worst, relative_error(fixed_exp2(x), std::exp2(x)));
    }
  }
  EXPECT_LT(worst, 1e-12);
  EXPECT_LT(worst, 1e-15) << "what the header promises";
}

TEST(FixedMath, exp2_is_exact_at_integers_and_defined_at_the_ends) {
  for (int x = -1022; x <= 1023; ++x) EXPECT_EQ(fixed_exp2(x), std::ldexp(1.0, x)) << x;
  EXPECT_EQ(fixed_exp2(-1022.1), 0.0);
  EXPECT_EQ(fixed_exp2(-1e300), 0.0);
  EXPECT_EQ(fixed_exp2(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_EQ(fixed_exp2(1024.0), std::numeric_limits<double>::infinity());
  EXPECT_LT(relative_error(fixed_exp2(1023.999), std::exp2(1023.999)), 1e-12);
}

TEST(FixedMath, log2_is_within_1e12_of_libm) {
  std::mt19937_64 chance(2);
  std::uniform_real_distribution<double> exponent(-1021.0, 1023.0);
  std::uniform_real_distribution<double> near_one(0.5, 2.0);
  double worst = 0.0;
  for (int i = 0; i < 200000; ++i) {
    for (double x : {std::exp2(exponent(chance)), near_one(chance)}) {
      worst = std::max(worst, relative_error(fixed_log2(x), std::log2(x)));
    }
  }
  EXPECT_LT(worst, 1e-12);
}

TEST(FixedMath, log2_is_exact_at_powers_of_two) {
  for (int x = -1022; x <= 1023; ++x) EXPECT_EQ(fixed_log2(std::ldexp(1.0, x)), x);
}

TEST(FixedMath, bits_do_not_depend_on_the_compiler) {
  uint64_t digest = 0;
  for (int i = -4000; i <= 4000; ++i) {
    const double x = i / 7.0;
    digest = digest * 6364136223846793005ULL + std::bit_cast<uint64_t>(fixed_exp2(x));
    digest = digest * 6364136223846793005ULL +
             std::bit_cast<uint64_t>(fixed_log2(std::abs(x) + 1.0 / 1024.0));
  }
  EXPECT_EQ(digest, 1820135682396364279ULL);
}

TEST(FixedMath, dust_becomes_zero_before_it_is_denormal) {
  double x = 1.0;
  for (int i = 0; i < 10000; ++i) {
    x = without_dust(x * 0.9);
    EXPECT_NE(std::fpclassify(x), FP_SUBNORMAL);
  }
  EXPECT_EQ(x, 0.0);
}

}  // namespace
}  // namespace memdecay::policy
