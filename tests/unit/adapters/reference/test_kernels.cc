// Both implementations of the kernels give the same bits, whatever the tiling.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>

#include "adapters/reference/half.h"
#include "adapters/reference/kernels.h"
#include "adapters/reference/thread_pool.h"
#include "tests/unit/adapters/reference/gguf_writer.h"

namespace memdecay::reference {
namespace {

using Floats = std::vector<float>;

Floats random_floats(Noise& noise, size_t count, float limit = 1.0f) {
  Floats out(count);
  for (float& value : out) value = noise.between(-limit, limit);
  return out;
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

Floats product(const Kernels& kernels, const Floats& weights, const Floats& input, size_t width,
               size_t rows, size_t tokens) {
  Floats out(rows * tokens);
  kernels.multiply({weights.data(), input.data(), out.data(), width, width, rows, tokens, 0, rows});
  return out;
}

class BothKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!processor_has_avx2()) GTEST_SKIP() << "this processor has no AVX2, FMA and F16C";
  }
};

TEST_F(BothKernels, products_have_the_same_bits) {
  Noise noise(1);
  for (const size_t tokens : {1u, 2u, 3u, 7u}) {
    for (const size_t rows : {1u, 4u, 13u, 24u}) {
      const Floats weights = random_floats(noise, rows * 72);
      const Floats input = random_floats(noise, tokens * 72);
      EXPECT_TRUE(same_bits(product(portable_kernels(), weights, input, 72, rows, tokens),
                            product(avx2_kernels(), weights, input, 72, rows, tokens)))
          << rows << " rows, " << tokens << " tokens";
    }
  }
}

TEST_F(BothKernels, norm_and_gate_have_the_same_bits) {
  Noise noise(2);
  const Floats input = random_floats(noise, 64, 3.0f);
  const Floats gain = random_floats(noise, 64);
  Floats a(64), b(64);
  portable_kernels().rms_norm(input.data(), gain.data(), 64, 1e-5f, a.data());
  avx2_kernels().rms_norm(input.data(), gain.data(), 64, 1e-5f, b.data());
  EXPECT_TRUE(same_bits(a, b));
  Floats gate = random_floats(noise, 4096, 100.0f);
  Floats other = gate;
  const Floats up = random_floats(noise, 4096);
  portable_kernels().gated(gate.data(), up.data(), gate.size());
  avx2_kernels().gated(other.data(), up.data(), other.size());
  EXPECT_TRUE(same_bits(gate, other));
}

TEST_F(BothKernels, attention_and_stored_pages_have_the_same_bits) {
  Noise noise(4);
  for (const KvType type : {KvType::kF16, KvType::kF32}) {
    for (const size_t head_dim : {8u, 64u, 80u}) {
      const KvLayout layout{1, 1, head_dim, 16, type};
      const Floats kv = random_floats(noise, 2 * 16 * head_dim, 4.0f);
      std::vector<std::byte> a(layout.page_bytes()), b(layout.page_bytes());
      portable_kernels().store(type, kv.data(), kv.size(), a.data());
      avx2_kernels().store(type, kv.data(), kv.size(), b.data());
      EXPECT_EQ(a, b);
      const Floats query = random_floats(noise, head_dim, 4.0f);
      const std::vector<const std::byte*> pages = {a.data(), b.data()};
      Floats out_a(head_dim), out_b(head_dim), weights_a(32), weights_b(32);
      AttentionTask task{query.data(),
                         out_a.data(),
                         weights_a.data(),
                         pages,
                         5,
                         16,
                         head_dim,
                         0,
                         layout.page_bytes() / 2,
                         0.3f};
      portable_kernels().attend(type, task);
      task.output = out_b.data();
      task.weights = weights_b.data();
      avx2_kernels().attend(type, task);
      EXPECT_TRUE(same_bits(out_a, out_b));
      EXPECT_TRUE(same_bits(weights_a, weights_b));
      EXPECT_NEAR(std::accumulate(weights_a.begin(), weights_a.end(), 0.0), 1.0, 1e-5);
      EXPECT_EQ(weights_a[21], 0.0f) << "a token behind the query";
    }
  }
}

TEST(Kernels, row_alone_equals_the_row_in_a_batch) {
  Noise noise(5);
  const Floats weights = random_floats(noise, 24 * 64);
  const Floats input = random_floats(noise, 7 * 64);
  for (const Kernels* kernels : {&portable_kernels(), &choose_kernels(KernelChoice::kBest)}) {
    const Floats batch = product(*kernels, weights, input, 64, 24, 7);
    for (size_t t = 0; t < 7; ++t) {
      const Floats alone(input.begin() + static_cast<long>(t * 64),
                         input.begin() + static_cast<long>(t * 64 + 64));
      const Floats row(batch.begin() + static_cast<long>(t * 24),
                       batch.begin() + static_cast<long>(t * 24 + 24));
      EXPECT_TRUE(same_bits(product(*kernels, weights, alone, 64, 24, 1), row)) << t;
    }
  }
}

TEST(Kernels, product_is_the_product) {
  Noise noise(6);
  const Floats weights = random_floats(noise, 5 * 32);
  const Floats input = random_floats(noise, 32);
  const Floats out = product(portable_kernels(), weights, input, 32, 5, 1);
  for (size_t r = 0; r < 5; ++r) {
    double sum = 0.0;
    for (size_t i = 0; i < 32; ++i) sum += double{weights[r * 32 + i]} * double{input[i]};
    EXPECT_NEAR(out[r], sum, 1e-5);
  }
}

TEST(Kernels, silu_agrees_with_the_library_and_survives_extremes) {
  Floats gate(2048);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = (static_cast<float>(i) - 1024.0f) * 0.125f;
  gate[0] = -3e38f;
  gate[2047] = 3e38f;
  const Floats before = gate;
  const Floats up(gate.size(), 1.0f);
  portable_kernels().gated(gate.data(), up.data(), gate.size());
  for (size_t i = 1; i + 1 < gate.size(); ++i) {
    const double x = before[i];
    const double wanted = x / (1.0 + std::exp(-x));
    EXPECT_NEAR(gate[i], wanted, 1e-6 * std::max(1.0, std::abs(wanted))) << x;
  }
  EXPECT_NEAR(gate[0], 0.0f, 10.0f);  // the exponent stops at 88; the point is: no NaN
  EXPECT_EQ(gate[2047], 3e38f);
}

TEST(Half, every_half_returns_from_float) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = float_of_half(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float_of_half(half_of_float(value))));
    } else {
      ASSERT_EQ(half_of_float(value), half);
    }
  }
}

TEST_F(BothKernels, halves_round_like_the_processor) {
  Noise noise(8);
  Floats values;
  for (uint32_t bits = 0; bits + 1 < 0x7c00; ++bits) {  // the middles between neighbours
    const float low = float_of_half(static_cast<uint16_t>(bits));
    const float high = float_of_half(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  for (const float value : {65519.9f, 65520.0f, 1e9f, 1e-9f, 0.0f, -0.0f}) values.push_back(value);
  while (values.size() % 8 != 0) values.push_back(noise.between(-2.0f, 2.0f));
  std::vector<std::byte> a(values.size() * 2), b(values.size() * 2);
  portable_kernels().store(KvType::kF16, values.data(), values.size(), a.data());
  avx2_kernels().store(KvType::kF16, values.data(), values.size(), b.data());
  EXPECT_EQ(a, b);
}

TEST(ThreadPool, every_item_runs_once) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (uint32_t round = 0; round < 300; ++round) {
      const uint32_t items = round % 37;
      std::vector<std::atomic<int>> counts(items);
      std::atomic<bool> bad_member{false};
      pool.run(items, [&](uint32_t item, int member) {
        counts[item].fetch_add(1);
        if (member < 0 || member >= threads) bad_member = true;
      });
      for (const std::atomic<int>& count : counts) ASSERT_EQ(count.load(), 1);
      ASSERT_FALSE(bad_member);
    }
  }
}

}  // namespace
}  // namespace memdecay::reference
