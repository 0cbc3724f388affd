// The decoder on a tiny random model: the same bits however a token is computed, honest errors,
// masses that add up.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "adapters/reference/decoder.h"
#include "adapters/reference/sampling.h"
#include "proto/contract/error.h"
#include "tests/unit/adapters/reference/gguf_writer.h"
#include "tests/unit/adapters/reference/host_pages.h"

namespace memdecay::reference {
namespace {

using Floats = std::vector<float>;
using Tokens = std::vector<TokenId>;

constexpr size_t kTokens = 150;  // more than one chunk, and a part of a page
constexpr size_t kPages = 12;

Tokens some_tokens(size_t count) {
  Noise noise(11);
  Tokens tokens(count);
  for (TokenId& token : tokens) token = noise.next() % 256;
  return tokens;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class DecoderTest : public ::testing::Test {
 protected:
  void SetUp() override { load(TinyModel{}); }

  void load(const TinyModel& tiny) {
    const std::vector<std::byte> bytes = tiny_model_gguf(tiny);
    absl::StatusOr<Gguf> gguf = Gguf::parse(bytes);
    ASSERT_TRUE(gguf.ok()) << gguf.status();
    absl::StatusOr<Model> model = Model::load(*gguf, one_);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = std::make_unique<Model>(*std::move(model));
    vocabulary_ = model_->shape().vocabulary;
  }

  Decoder decoder(KvType type = KvType::kF16) {
    return Decoder(*model_, one_, type, KernelChoice::kBest);
  }

  // Computes `tokens` in pieces of `step`; the logits of all positions.
  Floats compute(Decoder& with, HostPages& pages, const Tokens& tokens, size_t step,
                 size_t first = 0) {
    Floats logits;
    for (size_t at = first; at < tokens.size(); at += step) {
      const size_t size = std::min(step, tokens.size() - at);
      ForwardInput input;
      input.tokens = std::span(tokens).subspan(at, size);
      input.first_position = at;
      input.pages = pages.table();
      input.logits = LogitRows::kAll;
      absl::StatusOr<ForwardOutput> out = with.forward(input);
      EXPECT_TRUE(out.ok()) << out.status();
      if (!out.ok()) return {};
      logits.insert(logits.end(), out->logits.begin(), out->logits.end());
    }
    return logits;
  }

  Floats whole(Decoder& with, size_t step = kTokens) {
    HostPages pages(with.layout(), kPages);
    return compute(with, pages, some_tokens(kTokens), step);
  }

  ErrorCode refusal(const ForwardInput& input) {
    Decoder with = decoder();
    return error_code(with.forward(input).status());
  }

  ThreadPool one_{1};
  std::unique_ptr<Model> model_;
  size_t vocabulary_ = 0;
};

TEST_F(DecoderTest, steps_and_chunks_give_the_bits_of_one_prefill) {
  for (const KvType type : {KvType::kF16, KvType::kF32}) {
    Decoder with = decoder(type);
    const Floats prefill = whole(with);
    EXPECT_TRUE(std::isfinite(prefill[0]));
    for (const size_t step : {1u, 5u, 16u, 129u}) {
      EXPECT_TRUE(same_bits(prefill, whole(with, step))) << "pieces of " << step;
    }
  }
}

TEST_F(DecoderTest, last_row_is_the_last_of_all_rows) {
  Decoder with = decoder();
  const Floats all = whole(with);
  HostPages pages(with.layout(), kPages);
  const Tokens tokens = some_tokens(kTokens);
  ForwardInput input{.tokens = tokens, .pages = pages.table()};
  absl::StatusOr<ForwardOutput> last = with.forward(input);
  ASSERT_TRUE(last.ok());
  EXPECT_TRUE(same_bits(std::span(all).last(vocabulary_), last->logits));
  input.logits = LogitRows::kNone;
  EXPECT_TRUE(with.forward(input)->logits.empty());
}

TEST_F(DecoderTest, threads_do_not_change_a_bit) {
  Decoder alone = decoder();
  const Floats expected = whole(alone);
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    Decoder with(*model_, pool, KvType::kF16, KernelChoice::kBest);
    EXPECT_TRUE(same_bits(expected, whole(with))) << threads;
    EXPECT_TRUE(same_bits(expected, whole(with, 7))) << threads;
  }
}

TEST_F(DecoderTest, portable_kernels_give_the_same_bits) {
  Decoder best = decoder();
  Decoder portable(*model_, one_, KvType::kF16, KernelChoice::kPortable);
  EXPECT_EQ(portable.kernels().name, "portable");
  EXPECT_TRUE(same_bits(whole(best), whole(portable)));
}

// Changes only when the order of additions does; both compilers and all x86-64 processors agree.
TEST_F(DecoderTest, logits_are_these_bits) {
  Decoder with = decoder();
  EXPECT_EQ(sha256_hex(whole(with)),
            "73dd3c380249c2522b06cba3b5c681348d49277d5181eaa946c2b185c79ac74a");
}

TEST_F(DecoderTest, every_weight_type_and_a_separate_head_work) {
  for (const TensorType type :
       {TensorType::kF32, TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1}) {
    TinyModel tiny;
    tiny.linear = type;
    tiny.tied = false;
    load(tiny);
    Decoder with = decoder();
    const Floats logits = whole(with);
    for (const float value : logits) ASSERT_TRUE(std::isfinite(value));
    EXPECT_TRUE(same_bits(logits, whole(with, 3)));
  }
}

TEST_F(DecoderTest, page_moved_between_steps_changes_nothing) {
  Decoder with = decoder();
  const Floats expected = whole(with);
  const Tokens tokens = some_tokens(kTokens);
  HostPages pages(with.layout(), kPages);
  compute(with, pages, Tokens(tokens.begin(), tokens.begin() + 100), 100);
  for (const size_t page : {0u, 2u, 6u}) pages.move(page);  // 6 is the one being filled
  const Floats rest = compute(with, pages, tokens, 1, 100);
  EXPECT_TRUE(same_bits(std::span(expected).subspan(100 * vocabulary_), rest));
}

TEST_F(DecoderTest, given_up_and_restored_pages_bring_the_bits_back) {
  Decoder with = decoder();
  const Floats expected = whole(with);
  const Tokens tokens = some_tokens(kTokens);
  HostPages pages(with.layout(), kPages);
  compute(with, pages, Tokens(tokens.begin(), tokens.begin() + 149), 149);
  std::vector<std::vector<std::byte>> kept;
  for (size_t page = 0; page < 9; ++page) {
    kept.push_back(pages.copy_out(page));
    pages.give_up(page);
  }
  for (size_t page = 9; page-- > 0;) pages.restore(page, kept[page]);
  const Floats last = compute(with, pages, tokens, 1, 149);
  EXPECT_TRUE(same_bits(std::span(expected).last(vocabulary_), last));
}

TEST_F(DecoderTest, read_and_write_addresses_may_differ) {
  Decoder with = decoder();
  const Floats expected = whole(with);
  HostPages pages(with.layout(), kPages);
  std::vector<std::byte*> write(pages.table().write.begin(), pages.table().write.end());
  const Tokens tokens = some_tokens(kTokens);
  compute(with, pages, Tokens(tokens.begin(), tokens.begin() + 144), 144);
  for (size_t page = 0; page < 9; ++page) write[page] = nullptr;  // sealed: read only
  ForwardInput input{.tokens = std::span(tokens).subspan(144), .first_position = 144};
  input.pages = {pages.table().read, write};
  absl::StatusOr<ForwardOutput> out = with.forward(input);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(same_bits(std::span(expected).last(vocabulary_), out->logits));
}

TEST_F(DecoderTest, hole_changes_logits_and_keeps_positions) {
  Decoder with = decoder();
  const Floats expected = whole(with);
  const Tokens tokens = some_tokens(kTokens);
  HostPages pages(with.layout(), kPages);
  compute(with, pages, Tokens(tokens.begin(), tokens.begin() + 149), 149);
  const std::vector<std::byte> before = pages.copy_out(9);
  HostPages holed(with.layout(), kPages);
  compute(with, holed, Tokens(tokens.begin(), tokens.begin() + 149), 149);
  holed.give_up(3);
  const Floats last = compute(with, holed, tokens, 1, 149);
  EXPECT_FALSE(same_bits(std::span(expected).last(vocabulary_), last));
  for (const float value : last) ASSERT_TRUE(std::isfinite(value)) << "a hole was read";
  // The first layer's key depends on token and position alone: it is what it would have been.
  compute(with, pages, tokens, 1, 149);
  const size_t key = with.layout().offset(0, KvPart::kKey, 0, 149 % 16);
  const std::vector<std::byte> full = pages.copy_out(9);
  const std::vector<std::byte> lossy = holed.copy_out(9);
  EXPECT_EQ(0, std::memcmp(full.data() + key, lossy.data() + key, 32));
  EXPECT_NE(0, std::memcmp(full.data() + key, before.data() + key, 32));
}

PageMasses masses_of(Decoder& with, HostPages& pages, const Tokens& tokens, size_t first,
                     const MassRequest& request) {
  ForwardInput input{.tokens = std::span(tokens).subspan(first), .first_position = first};
  input.pages = pages.table();
  input.masses = &request;
  absl::StatusOr<ForwardOutput> out = with.forward(input);
  EXPECT_TRUE(out.ok() && !out->masses.empty()) << out.status();
  return out.ok() && !out->masses.empty() ? out->masses.front() : PageMasses{};
}

double total(const PageMasses& masses) {
  double sum = masses.sink + masses.tail + masses.rest;
  for (const PageMass& page : masses.listed) sum += page.mass;
  return sum;
}

TEST_F(DecoderTest, masses_add_up_and_know_sink_tail_and_rest) {
  Decoder with = decoder();
  HostPages pages(with.layout(), kPages);
  const Tokens tokens = some_tokens(kTokens);
  compute(with, pages, Tokens(tokens.begin(), tokens.begin() + 149), 149);
  pages.give_up(5);
  MassRequest request{.sinks = 4, .sealed_pages = 9};
  const PageMasses all = masses_of(with, pages, tokens, 149, request);
  EXPECT_EQ(all.queries, 1u);
  ASSERT_EQ(all.listed.size(), 8u);  // nine sealed, one hole
  EXPECT_EQ(all.listed[5].page, 6u);
  EXPECT_GT(all.sink, 0.0);
  EXPECT_GT(all.tail, 0.0);
  EXPECT_EQ(all.rest, 0.0);
  EXPECT_NEAR(total(all), 1.0, 1e-5);
  request.max_listed = 3;
  const PageMasses few = masses_of(with, pages, tokens, 149, request);
  ASSERT_EQ(few.listed.size(), 3u);
  EXPECT_LT(few.listed[0].page, few.listed[1].page);
  EXPECT_NEAR(total(few), 1.0, 1e-5);
  EXPECT_GT(few.rest, 0.0);
  EXPECT_EQ(few.sink, all.sink);
}

TEST_F(DecoderTest, masses_of_a_prefill_are_the_mean_of_its_queries) {
  Decoder with = decoder();
  const Tokens tokens = some_tokens(kTokens);
  HostPages pages(with.layout(), kPages);
  compute(with, pages, Tokens(tokens.begin(), tokens.begin() + 10), 10);
  const MassRequest request{.sinks = 2, .sealed_pages = 9};
  const PageMasses together = masses_of(with, pages, tokens, 10, request);
  EXPECT_EQ(together.queries, kTokens - 10);
  EXPECT_NEAR(total(together), 1.0, 1e-5);
  HostPages again(with.layout(), kPages);
  compute(with, again, Tokens(tokens.begin(), tokens.begin() + 10), 10);
  double sink = 0.0;
  for (size_t at = 10; at < kTokens; ++at) {
    const Tokens until(tokens.begin(), tokens.begin() + static_cast<long>(at) + 1);
    sink += masses_of(with, again, until, at, request).sink;
  }
  EXPECT_NEAR(together.sink, sink / static_cast<double>(kTokens - 10), 1e-9);
  const MassRequest last{.sinks = 2, .sealed_pages = 9, .last_queries = 1};
  EXPECT_EQ(masses_of(with, pages, tokens, 10, last).queries, 1u);
}

TEST_F(DecoderTest, masses_of_chosen_layers_and_heads_average_to_all) {
  Decoder with = decoder();
  HostPages pages(with.layout(), kPages);
  const Tokens tokens = some_tokens(kTokens);
  compute(with, pages, Tokens(tokens.begin(), tokens.begin() + 149), 149);
  double sink = 0.0;
  for (size_t layer = 0; layer < 2; ++layer) {
    for (size_t head = 0; head < 4; ++head) {
      const MassRequest one{.sealed_pages = 9, .choices = {{{layer, head}}}};
      sink += masses_of(with, pages, tokens, 149, one).sink / 8.0;
    }
  }
  const MassRequest all{.sealed_pages = 9};
  EXPECT_NEAR(masses_of(with, pages, tokens, 149, all).sink, sink, 1e-9);
}

bool equal(const PageMasses& a, const PageMasses& b) {
  const auto same = [](const PageMass& one, const PageMass& other) {
    return one.page == other.page && one.mass == other.mass;
  };
  return a.sink == b.sink && a.tail == b.tail && a.queries == b.queries &&
         std::equal(a.listed.begin(), a.listed.end(), b.listed.begin(), b.listed.end(), same);
}

TEST_F(DecoderTest, masses_in_groups_are_those_of_calls_of_their_own_bit_for_bit) {
  Decoder with = decoder();
  const Tokens tokens = some_tokens(kTokens);
  const HeadChoice few = {{0, 1}, {1, 3}};
  const MassRequest grouped{.choices = {HeadChoice{}, few}, .group_queries = 1};
  HostPages pages(with.layout(), kPages);
  ForwardInput input{.tokens = tokens, .pages = pages.table(), .masses = &grouped};
  absl::StatusOr<ForwardOutput> out = with.forward(input);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->masses.size(), 2 * kTokens);
  HostPages again(with.layout(), kPages);
  for (size_t at = 0; at < kTokens; ++at) {
    const Tokens until(tokens.begin(), tokens.begin() + static_cast<long>(at) + 1);
    for (size_t choice = 0; choice < 2; ++choice) {
      const MassRequest alone{.sealed_pages = at / 16, .choices = {grouped.choices[choice]}};
      EXPECT_TRUE(equal(masses_of(with, again, until, at, alone), out->masses[2 * at + choice]))
          << "query " << at << ", choice " << choice;
    }
  }
}

TEST(Heads, are_read_from_text_and_refused_when_the_model_has_none_such) {
  EXPECT_TRUE(parse_heads("all", 6, 2)->empty());
  const HeadChoice late = {{4, 0}, {4, 1}, {5, 0}, {5, 1}};
  EXPECT_EQ(*parse_heads("late", 6, 2), late);
  const HeadChoice listed = {{1, 1}, {3, 0}};
  EXPECT_EQ(*parse_heads("3:0,1:1,3:0", 6, 2), listed);
  for (const char* bad : {"", "6:0", "0:2", "1", "1:0,", "1:0:1", "-1:0", "x:1"}) {
    EXPECT_EQ(error_code(parse_heads(bad, 6, 2).status()), ErrorCode::kInvalidArgument) << bad;
  }
}

TEST_F(DecoderTest, asking_for_masses_changes_no_logits) {
  Decoder with = decoder();
  const Floats expected = whole(with);
  HostPages pages(with.layout(), kPages);
  const Tokens tokens = some_tokens(kTokens);
  const MassRequest request;
  ForwardInput input{.tokens = tokens, .pages = pages.table(), .masses = &request};
  EXPECT_TRUE(same_bits(std::span(expected).last(vocabulary_), with.forward(input)->logits));
}

TEST_F(DecoderTest, bad_input_gets_a_typed_error) {
  HostPages pages(decoder().layout(), kPages);
  const Tokens tokens = some_tokens(20);
  const ForwardInput good{.tokens = tokens, .pages = pages.table()};
  EXPECT_EQ(refusal(good), ErrorCode::kOk);
  ForwardInput bad = good;
  bad.tokens = {};
  EXPECT_EQ(refusal(bad), ErrorCode::kInvalidArgument);
  const Tokens outside = {TokenId{5}, static_cast<TokenId>(vocabulary_)};
  bad.tokens = outside;
  EXPECT_EQ(refusal(bad), ErrorCode::kInvalidArgument);
  bad = good;
  bad.first_position = kPages * 16 - 10;
  EXPECT_EQ(refusal(bad), ErrorCode::kOutOfRange) << "beyond the table";
  bad.first_position = 500;
  EXPECT_EQ(refusal(bad), ErrorCode::kOutOfRange) << "beyond the context";
  bad.first_position = ~size_t{0};
  EXPECT_EQ(refusal(bad), ErrorCode::kOutOfRange);
  const MassRequest layer{.choices = {{{2, 0}}}};
  const MassRequest head{.choices = {{{0, 4}}}};
  const MassRequest last_in_groups{.last_queries = 1, .group_queries = 2};
  for (const MassRequest* request : {&layer, &head, &last_in_groups}) {
    bad = good;
    bad.masses = request;
    EXPECT_EQ(refusal(bad), ErrorCode::kInvalidArgument);
  }
  pages.hide(1);
  EXPECT_EQ(refusal(good), ErrorCode::kInvalidArgument) << "a token into a hole";
}

TEST(Sampling, ties_go_to_the_lowest_id) {
  const Floats logits = {1.0f, 3.0f, 2.0f, 3.0f};
  EXPECT_EQ(greedy_token(logits), 1u);
}

TEST(Sampling, sha256_is_the_standards) {
  EXPECT_EQ(sha256_hex(std::as_bytes(std::span("abc", 3))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_NE(sha256_hex(Floats{0.0f}), sha256_hex(Floats{-0.0f}));
}

}  // namespace
}  // namespace memdecay::reference
