// Eight lanes in one AVX2 register, with FMA and F16C.
//
// This file alone is compiled with -march=x86-64-v3. Everything in it has internal linkage except
// the accessor of the table, so that no other code can run these instructions by accident.
#include <immintrin.h>

#include "adapters/reference/kernels_lanes.h"

namespace memdecay::reference {
namespace {

struct Avx2Lanes {
  __m256 v;

  static Avx2Lanes load(const float* at) { return {_mm256_loadu_ps(at)}; }
  static Avx2Lanes load_floats(const std::byte* at) {
    return {_mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)))};
  }
  static Avx2Lanes load_halves(const std::byte* at) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)))};
  }
  static Avx2Lanes fill(float value) { return {_mm256_set1_ps(value)}; }
  static Avx2Lanes multiply_add(Avx2Lanes a, Avx2Lanes b, Avx2Lanes c) {
    return {_mm256_fmadd_ps(a.v, b.v, c.v)};
  }
  static Avx2Lanes multiply(Avx2Lanes a, Avx2Lanes b) { return {_mm256_mul_ps(a.v, b.v)}; }
  static Avx2Lanes divide(Avx2Lanes a, Avx2Lanes b) { return {_mm256_div_ps(a.v, b.v)}; }
  static Avx2Lanes add(Avx2Lanes a, Avx2Lanes b) { return {_mm256_add_ps(a.v, b.v)}; }
  static Avx2Lanes larger(Avx2Lanes a, Avx2Lanes b) { return {_mm256_max_ps(a.v, b.v)}; }
  static Avx2Lanes smaller(Avx2Lanes a, Avx2Lanes b) { return {_mm256_min_ps(a.v, b.v)}; }
  static Avx2Lanes nearest(Avx2Lanes a) {
    return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }
  static Avx2Lanes zero_where_below(Avx2Lanes x, Avx2Lanes limit, Avx2Lanes value) {
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.v, limit.v, _CMP_LT_OQ), value.v)};
  }
  static float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

  Avx2Lanes power_of_two() const {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(127));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(biased, 23))};
  }
  float sum() const {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  float largest() const {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  void save(float* at) const { _mm256_storeu_ps(at, v); }
  void save_floats(std::byte* at) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), _mm256_castps_si256(v));
  }
  void save_halves(std::byte* at) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
};

constexpr Kernels kTable = LaneKernels<Avx2Lanes>::table("avx2");

}  // namespace

const Kernels& avx2_kernels() { return kTable; }

}  // namespace memdecay::reference
