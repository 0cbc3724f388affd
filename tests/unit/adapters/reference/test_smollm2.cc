// The real model against reference values (tests/golden/smollm2), and its bits against themselves.
//
// Skips loudly without the model file: run deploy/fetch_model.sh.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "adapters/reference/chat.h"
#include "adapters/reference/decoder.h"
#include "adapters/reference/episode.h"
#include "adapters/reference/sampling.h"
#include "adapters/reference/tokenizer.h"
#include "tests/unit/adapters/reference/host_pages.h"

namespace memdecay::reference {
namespace {

using Floats = std::vector<float>;
using Tokens = std::vector<TokenId>;
using Json = nlohmann::json;

std::string model_path() {
  const char* given = std::getenv("MEMDECAY_MODEL");
  return given != nullptr ? given : MEMDECAY_MODEL_PATH;
}

Json golden_json(const std::string& name) {
  std::ifstream file(std::string(MEMDECAY_GOLDEN) + "/" + name);
  return Json::parse(file);
}

Floats golden_floats(const std::string& name) {
  std::ifstream file(std::string(MEMDECAY_GOLDEN) + "/" + name, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  Floats out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double most = a.size() == b.size() ? 0.0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  }
  return most;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Loaded once for all tests of this program.
struct Loaded {
  ThreadPool pool{2};
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer;
};

class SmolLm2 : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    absl::StatusOr<ModelFile> file = ModelFile::open(model_path());
    if (!file.ok()) return;
    loaded_ = std::make_unique<Loaded>();
    absl::StatusOr<Model> model = Model::load(file->gguf(), loaded_->pool);
    absl::StatusOr<Tokenizer> tokenizer = Tokenizer::from_gguf(file->gguf());
    ASSERT_TRUE(model.ok() && tokenizer.ok()) << model.status() << tokenizer.status();
    loaded_->model = std::make_unique<Model>(*std::move(model));
    loaded_->tokenizer = std::make_unique<Tokenizer>(*std::move(tokenizer));
  }
  static void TearDownTestSuite() { loaded_.reset(); }

  void SetUp() override {
    if (loaded_ == nullptr) {
      GTEST_SKIP() << "\n*** NOT TESTED: no model at " << model_path()
                   << "; run deploy/fetch_model.sh or set MEMDECAY_MODEL ***";
    }
    tokens_ = golden_json("logits64.json")["tokens"].get<Tokens>();
    vocabulary_ = loaded_->model->shape().vocabulary;
  }

  Decoder decoder(KvType type, KernelChoice choice = KernelChoice::kBest) {
    return Decoder(*loaded_->model, loaded_->pool, type, choice);
  }

  // Logits of all of tokens [first, end), computed in pieces.
  Floats compute(Decoder& with, HostPages& pages, size_t first, size_t end, size_t step) {
    Floats logits;
    for (size_t at = first; at < end; at += step) {
      ForwardInput input;
      input.tokens = std::span(tokens_).subspan(at, std::min(step, end - at));
      input.first_position = at;
      input.pages = pages.table();
      input.logits = LogitRows::kAll;
      absl::StatusOr<ForwardOutput> out = with.forward(input);
      EXPECT_TRUE(out.ok()) << out.status();
      if (out.ok()) logits.insert(logits.end(), out->logits.begin(), out->logits.end());
    }
    return logits;
  }

  void expect_golden(KvType type, double tolerance) {
    Decoder with = decoder(type);
    HostPages pages(with.layout(), 7);
    const Floats logits = compute(with, pages, 0, 64, 64);
    const Json golden = golden_json("logits64.json");
    int agree = 0;
    double most = 0.0;
    for (size_t t = 0; t < 64; ++t) {
      const std::span<const float> row = std::span(logits).subspan(t * vocabulary_, vocabulary_);
      for (const Json& pair : golden["top32"][t]) {
        const double wanted = pair[1].get<double>();
        most = std::max(most, std::abs(double{row[pair[0].get<size_t>()]} - wanted));
      }
      agree += greedy_token(row) == golden["top32"][t][0][0].get<TokenId>();
    }
    EXPECT_EQ(agree, 64);
    const double last =
        largest_difference(std::span(logits).last(vocabulary_), golden_floats("last_logits.f32"));
    EXPECT_LE(most, tolerance);
    EXPECT_LE(last, tolerance);
    RecordProperty("largest_difference", std::to_string(std::max(most, last)));
    std::printf("    largest difference from the reference: %.3g\n", std::max(most, last));
    expect_greedy(with, pages, std::span(logits).last(vocabulary_), golden["greedy32"]);
  }

  void expect_greedy(Decoder& with, HostPages& pages, std::span<const float> logits,
                     const Json& wanted) {
    TokenId next = greedy_token(logits);
    Tokens generated;
    for (size_t i = 0; i < 32; ++i) {
      generated.push_back(next);
      ForwardInput input{.tokens = std::span(&next, 1), .first_position = 64 + i};
      input.pages = pages.table();
      absl::StatusOr<ForwardOutput> out = with.forward(input);
      ASSERT_TRUE(out.ok()) << out.status();
      next = greedy_token(out->logits);
    }
    EXPECT_EQ(generated, wanted.get<Tokens>());
  }

  static std::unique_ptr<Loaded> loaded_;
  Tokens tokens_;
  size_t vocabulary_ = 0;
};
std::unique_ptr<Loaded> SmolLm2::loaded_;

TEST_F(SmolLm2, page_is_368640_bytes) {
  const KvLayout layout = loaded_->model->shape().kv_layout(KvType::kF16);
  EXPECT_EQ(layout.page_bytes(), 368640u);
  EXPECT_EQ(layout.layer_bytes(), 12288u);
}

TEST_F(SmolLm2, tokeniser_pairs_are_equal) {
  const Json pairs = golden_json("tokenizer.json");
  ASSERT_GE(pairs.size(), 10u);
  for (const Json& pair : pairs) {
    const std::string text = pair[0];
    EXPECT_EQ(loaded_->tokenizer->encode(text, SpecialTokens::kParse), pair[1].get<Tokens>())
        << text;
    EXPECT_EQ(loaded_->tokenizer->decode(pair[1].get<Tokens>()), text);
  }
}

TEST_F(SmolLm2, f32_kv_agrees_within_2e_4_and_greedy_32_of_32) {
  expect_golden(KvType::kF32, 2e-4);
}

TEST_F(SmolLm2, f16_kv_agrees_within_0_03_and_greedy_32_of_32) {
  expect_golden(KvType::kF16, 0.03);
}

TEST_F(SmolLm2, hole_equals_masking_and_masses_are_exact) {
  Decoder with = decoder(KvType::kF32);
  HostPages pages(with.layout(), 4);
  compute(with, pages, 0, 63, 63);
  pages.give_up(1);
  const MassRequest request{.sinks = 0, .sealed_pages = 4};
  ForwardInput input{.tokens = std::span(tokens_).subspan(63, 1), .first_position = 63};
  input.pages = pages.table();
  input.masses = &request;
  absl::StatusOr<ForwardOutput> out = with.forward(input);
  ASSERT_TRUE(out.ok()) << out.status();
  const double difference =
      largest_difference(out->logits, golden_floats("last_logits_hole_16_31.f32"));
  EXPECT_LE(difference, 2e-4);
  std::printf("    largest difference from masking: %.3g\n", difference);
  ASSERT_EQ(out->masses.front().listed.size(), 3u);
  EXPECT_NEAR(out->masses.front().listed[0].mass, 0.498187, 1e-5);
  EXPECT_NEAR(out->masses.front().listed[1].mass, 0.078476, 1e-5);
  EXPECT_NEAR(out->masses.front().listed[2].mass, 0.423337, 1e-5);
  EXPECT_EQ(out->masses.front().listed[1].page, 2u);
}

TEST_F(SmolLm2, every_way_of_computing_gives_the_same_bits) {
  Decoder with = decoder(KvType::kF16);
  HostPages pages(with.layout(), 4);
  const Floats prefill = compute(with, pages, 0, 64, 64);
  for (const size_t step : {1u, 7u, 16u}) {
    HostPages again(with.layout(), 4);
    EXPECT_TRUE(same_bits(prefill, compute(with, again, 0, 64, step))) << "pieces of " << step;
  }
  ThreadPool one(1);
  Decoder alone(*loaded_->model, one, KvType::kF16, KernelChoice::kBest);
  HostPages others(alone.layout(), 4);
  EXPECT_TRUE(same_bits(prefill, compute(alone, others, 0, 64, 64))) << "one thread";
}

TEST_F(SmolLm2, portable_kernels_give_the_same_bits) {
  Decoder best = decoder(KvType::kF16);
  Decoder portable = decoder(KvType::kF16, KernelChoice::kPortable);
  HostPages a(best.layout(), 1);
  HostPages b(portable.layout(), 1);
  EXPECT_TRUE(same_bits(compute(best, a, 0, 6, 6), compute(portable, b, 0, 6, 4)));
}

TEST_F(SmolLm2, page_restored_elsewhere_gives_the_same_bits) {
  Decoder with = decoder(KvType::kF16);
  HostPages pages(with.layout(), 4);
  const Floats whole = compute(with, pages, 0, 64, 64);
  HostPages moved(with.layout(), 4);
  compute(with, moved, 0, 63, 63);
  for (const size_t page : {1u, 0u, 3u}) moved.move(page);
  EXPECT_TRUE(same_bits(std::span(whole).last(vocabulary_), compute(with, moved, 63, 64, 1)));
}

TEST_F(SmolLm2, episodes_are_long_enough_and_use_all_regions) {
  absl::StatusOr<ChatTemplate> chat = ChatTemplate::create(*loaded_->tokenizer);
  ASSERT_TRUE(chat.ok()) << chat.status();
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MEMDECAY_EPISODES)) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    absl::StatusOr<Episode> episode = load_episode(entry.path(), *chat);
    ASSERT_TRUE(episode.ok()) << entry.path() << ": " << episode.status();
    std::printf("    %s: %zu tokens to prefill in %zu turns, %zu to generate\n",
                episode->name.c_str(), episode->prefill_tokens(), episode->turns.size(),
                episode->generated_tokens());
    EXPECT_GE(episode->prefill_tokens(), 1200u) << episode->name;
    EXPECT_LE(episode->prefill_tokens(), 1500u) << episode->name;
    EXPECT_GE(episode->turns.size(), 4u);
    EXPECT_EQ(episode->name, entry.path().stem());
    std::set<Region> regions;
    int tool_pauses = 0;
    for (const EpisodeTurn& turn : episode->turns) {
      for (const RegionSpan& span : turn.spans) regions.insert(span.region);
      tool_pauses += turn.pause == SessionState::kWaitingTool;
    }
    EXPECT_EQ(regions.size(), 7u) << episode->name;
    EXPECT_GE(tool_pauses, 2) << episode->name;
  }
  EXPECT_GE(files, 4u);
}

}  // namespace
}  // namespace memdecay::reference
