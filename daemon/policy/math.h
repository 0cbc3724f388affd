// exp2 and log2 with the same bits everywhere. libm promises accuracy, not bits: two versions of
// it, or one with a vector variant, may order two pages differently. These use only +, -, *, / on
// doubles in a fixed order (the build forbids fused multiply-adds), so GCC, Clang and every x86-64
// machine agree. Relative error below 1e-15 (tested against libm at 1e-12).
// Thread: pure functions. Not here: anything that only orders integers.
#pragma once

namespace memdecay::policy {

// 2^x. Results below the smallest normal number are 0 (no denormal stalls); above the largest, inf.
double fixed_exp2(double x);

// log2(x) for finite x > 0 (normal numbers; anything else is a bug of the caller).
double fixed_log2(double x);

// A decaying sum that is as good as 0 becomes 0 before it is a denormal number.
inline double without_dust(double x) { return x < 0x1p-600 ? 0.0 : x; }

}  // namespace memdecay::policy
