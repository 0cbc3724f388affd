// Eight lanes as an array of floats: any processor, the same bits as AVX2, much slower where the
// processor has no fused multiply-add.
#include <bit>
#include <cmath>
#include <cstring>

#include "adapters/reference/half.h"
#include "adapters/reference/kernels_lanes.h"

namespace memdecay::reference {
namespace {

struct PortableLanes {
  float v[8];

  template <class Function>
  static PortableLanes each(Function function) {
    PortableLanes out;
    for (int i = 0; i < 8; ++i) out.v[i] = function(i);
    return out;
  }

  static PortableLanes load(const float* at) {
    return each([&](int i) { return at[i]; });
  }
  static PortableLanes load_floats(const std::byte* at) {
    PortableLanes out;
    std::memcpy(out.v, at, sizeof(out.v));
    return out;
  }
  static PortableLanes load_halves(const std::byte* at) {
    uint16_t halves[8];
    std::memcpy(halves, at, sizeof(halves));
    return each([&](int i) { return float_of_half(halves[i]); });
  }
  static PortableLanes fill(float value) {
    return each([&](int) { return value; });
  }
  static PortableLanes multiply_add(const PortableLanes& a, const PortableLanes& b,
                                    const PortableLanes& c) {
    return each([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
  }
  static PortableLanes multiply(const PortableLanes& a, const PortableLanes& b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  static PortableLanes divide(const PortableLanes& a, const PortableLanes& b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  static PortableLanes add(const PortableLanes& a, const PortableLanes& b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  static PortableLanes larger(const PortableLanes& a, const PortableLanes& b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static PortableLanes smaller(const PortableLanes& a, const PortableLanes& b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  static PortableLanes nearest(const PortableLanes& a) {
    return each([&](int i) { return std::nearbyint(a.v[i]); });
  }
  static PortableLanes zero_where_below(const PortableLanes& x, const PortableLanes& limit,
                                        const PortableLanes& value) {
    return each([&](int i) { return x.v[i] < limit.v[i] ? 0.0f : value.v[i]; });
  }
  static float square_root(float x) { return std::sqrt(x); }

  PortableLanes power_of_two() const {
    return each([&](int i) {
      const int32_t biased = static_cast<int32_t>(v[i]) + 127;
      return std::bit_cast<float>(static_cast<uint32_t>(biased) << 23);
    });
  }
  float sum() const { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }
  float largest() const {
    float best = v[0];
    for (int i = 1; i < 8; ++i) best = v[i] > best ? v[i] : best;
    return best;
  }
  void save(float* at) const { std::memcpy(at, v, sizeof(v)); }
  void save_floats(std::byte* at) const { std::memcpy(at, v, sizeof(v)); }
  void save_halves(std::byte* at) const {
    uint16_t halves[8];
    for (int i = 0; i < 8; ++i) halves[i] = half_of_float(v[i]);
    std::memcpy(at, halves, sizeof(halves));
  }
};

constexpr Kernels kTable = LaneKernels<PortableLanes>::table("portable");

}  // namespace

const Kernels& portable_kernels() { return kTable; }

}  // namespace memdecay::reference
