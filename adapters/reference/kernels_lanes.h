// The kernels of kernels.h, written once over eight lanes.
//
// Why: the portable and the AVX2 implementation agree bit for bit because both are this text; they
// differ only in the type `Lanes` (eight floats and a dozen operations that round alike).
// Thread: pure functions.
// Invariant: included only by kernels_*.cc, with a Lanes type of an anonymous namespace, so that
// no function compiled for a newer processor can be linked into other code.
// Not here: choosing an implementation (kernels.cc).
#pragma once

#include "adapters/reference/kernels.h"

namespace memdecay::reference {

template <class Lanes>
struct LaneKernels {
  static constexpr size_t kLanes = 8;

  // Reads eight elements of a page as floats.
  template <KvType type>
  static Lanes load_elements(const std::byte* at) {
    if constexpr (type == KvType::kF16) {
      return Lanes::load_halves(at);
    } else {
      return Lanes::load_floats(at);
    }
  }

  // A tile of sums: one accumulator a (row, token), whatever the tile's size.
  template <size_t rows, size_t tokens>
  static void tile(const MatrixTask& task, size_t row, size_t token) {
    const float* weights = task.weights + row * task.width;
    const float* input = task.input + token * task.input_stride;
    Lanes sums[rows][tokens];
    for (size_t r = 0; r < rows; ++r) {
      for (size_t t = 0; t < tokens; ++t) sums[r][t] = Lanes::fill(0.0f);
    }
    for (size_t i = 0; i < task.width; i += kLanes) {
      Lanes values[tokens];
      for (size_t t = 0; t < tokens; ++t)
        values[t] = Lanes::load(input + t * task.input_stride + i);
      for (size_t r = 0; r < rows; ++r) {
        const Lanes weight = Lanes::load(weights + r * task.width + i);
        for (size_t t = 0; t < tokens; ++t) {
          sums[r][t] = Lanes::multiply_add(weight, values[t], sums[r][t]);
        }
      }
    }
    float* output = task.output + token * task.output_stride + row;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t t = 0; t < tokens; ++t) output[t * task.output_stride + r] = sums[r][t].sum();
    }
  }

  template <size_t rows>
  static void row_block(const MatrixTask& task, size_t row) {
    size_t token = 0;
    for (; token + 3 <= task.tokens; token += 3) tile<rows, 3>(task, row, token);
    for (; token < task.tokens; ++token) tile<rows, 1>(task, row, token);
  }

  static void multiply(const MatrixTask& task) {
    size_t row = task.row_begin;
    if (task.tokens == 1) {
      for (; row + 8 <= task.row_end; row += 8) tile<8, 1>(task, row, 0);
    }
    for (; row + 4 <= task.row_end; row += 4) row_block<4>(task, row);
    for (; row < task.row_end; ++row) row_block<1>(task, row);
  }

  static void rms_norm(const float* input, const float* gain, size_t width, float epsilon,
                       float* output) {
    Lanes squares = Lanes::fill(0.0f);
    for (size_t i = 0; i < width; i += kLanes) {
      const Lanes value = Lanes::load(input + i);
      squares = Lanes::multiply_add(value, value, squares);
    }
    const float mean = squares.sum() / static_cast<float>(width);
    const Lanes scale = Lanes::fill(1.0f / Lanes::square_root(mean + epsilon));
    for (size_t i = 0; i < width; i += kLanes) {
      const Lanes scaled = Lanes::multiply(Lanes::load(input + i), scale);
      Lanes::multiply(scaled, Lanes::load(gain + i)).save(output + i);
    }
  }

  // e^x within 2e-7 relative (Cephes' expf): 0 below -87.3, no overflow above 88.
  static Lanes exponential(Lanes x) {
    const Lanes lowest = Lanes::fill(-87.33f);
    const Lanes bounded = Lanes::larger(Lanes::smaller(x, Lanes::fill(88.0f)), lowest);
    const Lanes power = Lanes::nearest(Lanes::multiply(bounded, Lanes::fill(1.44269504f)));
    Lanes rest = Lanes::multiply_add(power, Lanes::fill(-0.693359375f), bounded);
    rest = Lanes::multiply_add(power, Lanes::fill(2.12194440e-4f), rest);
    constexpr float kTerms[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                                1.6666665459e-1f, 5.0000001201e-1f};
    Lanes series = Lanes::fill(1.9875691500e-4f);
    for (const float term : kTerms) {
      series = Lanes::multiply_add(series, rest, Lanes::fill(term));
    }
    series = Lanes::multiply_add(series, Lanes::multiply(rest, rest), rest);
    series = Lanes::add(series, Lanes::fill(1.0f));
    return Lanes::zero_where_below(x, lowest, Lanes::multiply(series, power.power_of_two()));
  }

  static void gated(float* gate, const float* up, size_t width) {
    const Lanes one = Lanes::fill(1.0f);
    for (size_t i = 0; i < width; i += kLanes) {
      const Lanes value = Lanes::load(gate + i);
      const Lanes minus = Lanes::multiply(value, Lanes::fill(-1.0f));
      const Lanes silu = Lanes::divide(value, Lanes::add(one, exponential(minus)));
      Lanes::multiply(silu, Lanes::load(up + i)).save(gate + i);
    }
  }

  static void store(KvType type, const float* input, size_t count, std::byte* output) {
    for (size_t i = 0; i < count; i += kLanes) {
      const Lanes value = Lanes::load(input + i);
      if (type == KvType::kF16) {
        value.save_halves(output + i * 2);
      } else {
        value.save_floats(output + i * 4);
      }
    }
  }

  // Scaled products of the query with every visible key; padding gets minus infinity.
  template <KvType type>
  static void score(const AttentionTask& task) {
    constexpr size_t kBytes = type == KvType::kF16 ? 2 : 4;
    float* score = task.weights;
    for (size_t p = 0; p < task.pages.size(); ++p) {
      const bool last = p + 1 == task.pages.size();
      const size_t visible = last ? task.last_tokens : task.page_tokens;
      const std::byte* key = task.pages[p] + task.key_offset;
      for (size_t t = 0; t < visible; ++t, key += task.head_dim * kBytes) {
        Lanes sum = Lanes::fill(0.0f);
        for (size_t i = 0; i < task.head_dim; i += kLanes) {
          sum = Lanes::multiply_add(load_elements<type>(key + i * kBytes),
                                    Lanes::load(task.query + i), sum);
        }
        score[t] = sum.sum() * task.scale;
      }
      for (size_t t = visible; t < task.page_tokens; ++t) score[t] = -__builtin_inff();
      score += task.page_tokens;
    }
  }

  static void softmax(float* weights, size_t count) {
    Lanes highest = Lanes::load(weights);
    for (size_t i = kLanes; i < count; i += kLanes) {
      highest = Lanes::larger(highest, Lanes::load(weights + i));
    }
    const Lanes offset = Lanes::fill(-highest.largest());
    Lanes sums = Lanes::fill(0.0f);
    for (size_t i = 0; i < count; i += kLanes) {
      const Lanes value = exponential(Lanes::add(Lanes::load(weights + i), offset));
      sums = Lanes::add(sums, value);
      value.save(weights + i);
    }
    const Lanes scale = Lanes::fill(1.0f / sums.sum());
    for (size_t i = 0; i < count; i += kLanes) {
      Lanes::multiply(Lanes::load(weights + i), scale).save(weights + i);
    }
  }

  // Adds values token by token into `width` accumulators of eight elements, from element `first`.
  template <KvType type, size_t width>
  static void blend(const AttentionTask& task, size_t first) {
    constexpr size_t kBytes = type == KvType::kF16 ? 2 : 4;
    Lanes sums[width];
    for (size_t i = 0; i < width; ++i) sums[i] = Lanes::fill(0.0f);
    const float* weight = task.weights;
    for (size_t p = 0; p < task.pages.size(); ++p) {
      const bool last = p + 1 == task.pages.size();
      const size_t visible = last ? task.last_tokens : task.page_tokens;
      const std::byte* value = task.pages[p] + task.value_offset + first * kBytes;
      for (size_t t = 0; t < visible; ++t, value += task.head_dim * kBytes) {
        const Lanes factor = Lanes::fill(weight[t]);
        for (size_t i = 0; i < width; ++i) {
          sums[i] = Lanes::multiply_add(load_elements<type>(value + i * kLanes * kBytes), factor,
                                        sums[i]);
        }
      }
      weight += task.page_tokens;
    }
    for (size_t i = 0; i < width; ++i) sums[i].save(task.output + first + i * kLanes);
  }

  template <KvType type>
  static void attend_typed(const AttentionTask& task) {
    score<type>(task);
    softmax(task.weights, task.pages.size() * task.page_tokens);
    size_t first = 0;
    for (; first + 8 * kLanes <= task.head_dim; first += 8 * kLanes) blend<type, 8>(task, first);
    for (; first < task.head_dim; first += kLanes) blend<type, 1>(task, first);
  }

  static void attend(KvType type, const AttentionTask& task) {
    if (type == KvType::kF16) {
      attend_typed<KvType::kF16>(task);
    } else {
      attend_typed<KvType::kF32>(task);
    }
  }

  static constexpr Kernels table(std::string_view name) {
    return {name, multiply, rms_norm, gated, store, attend};
  }
};

}  // namespace memdecay::reference
