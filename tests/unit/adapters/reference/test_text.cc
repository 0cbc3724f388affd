// Tokeniser, chat template and episodes on the tiny byte-level vocabulary.
#include <gtest/gtest.h>

#include "adapters/reference/chat.h"
#include "adapters/reference/episode.h"
#include "adapters/reference/tokenizer.h"
#include "proto/contract/error.h"
#include "tests/unit/adapters/reference/gguf_writer.h"

namespace memdecay::reference {
namespace {

class TextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::byte> bytes = tiny_model_gguf(TinyModel{});
    absl::StatusOr<Gguf> gguf = Gguf::parse(bytes);
    ASSERT_TRUE(gguf.ok()) << gguf.status();
    absl::StatusOr<Tokenizer> tokenizer = Tokenizer::from_gguf(*gguf);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = std::make_unique<Tokenizer>(*std::move(tokenizer));
    absl::StatusOr<ChatTemplate> chat = ChatTemplate::create(*tokenizer_);
    ASSERT_TRUE(chat.ok()) << chat.status();
    chat_ = std::make_unique<ChatTemplate>(*std::move(chat));
  }

  std::string text_of(const EpisodeTurn& turn, const RegionSpan& span) const {
    return tokenizer_->decode(std::span(turn.tokens).subspan(span.begin, span.end - span.begin));
  }
  absl::Status refusal(std::string_view json) { return parse_episode(json, *chat_).status(); }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> chat_;
};

TEST_F(TextTest, merges_apply_by_rank) {
  EXPECT_EQ(tokenizer_->encode("hello", SpecialTokens::kPlain), std::vector<TokenId>{261});
  EXPECT_EQ(tokenizer_->encode("hell", SpecialTokens::kPlain), std::vector<TokenId>{260});
  EXPECT_EQ(tokenizer_->encode("hel", SpecialTokens::kPlain), (std::vector<TokenId>{258, 'l'}));
  EXPECT_EQ(tokenizer_->encode("llll", SpecialTokens::kPlain), (std::vector<TokenId>{259, 259}));
  EXPECT_TRUE(tokenizer_->encode("", SpecialTokens::kParse).empty());
}

TEST_F(TextTest, words_do_not_merge_across_their_border) {
  EXPECT_EQ(tokenizer_->encode("h1e", SpecialTokens::kPlain).size(), 3u);
  EXPECT_EQ(tokenizer_->encode("h e", SpecialTokens::kPlain).size(), 3u);
}

TEST_F(TextTest, any_bytes_survive_the_round_trip) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (const std::string& text :
       {bytes, std::string("\xff\xfe caf\xc3 hello"),
        std::string("na\xc3\xafve \xe4\xbd\xa0\n\n\t x"), std::string(3000, 'l')}) {
    for (const SpecialTokens special : {SpecialTokens::kPlain, SpecialTokens::kParse}) {
      EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(text, special)), text);
    }
  }
}

TEST_F(TextTest, markers_in_text_are_special_only_when_asked) {
  const std::string text = "a<|im_end|>b";
  EXPECT_EQ(tokenizer_->encode(text, SpecialTokens::kParse), (std::vector<TokenId>{'a', 257, 'b'}));
  for (const TokenId token : tokenizer_->encode(text, SpecialTokens::kPlain)) {
    EXPECT_NE(token, 257u);
  }
}

TEST_F(TextTest, other_vocabulary_kinds_are_unsupported) {
  GgufWriter writer;
  writer.text("tokenizer.ggml.model", "llama");
  const std::vector<std::byte> bytes = writer.bytes();
  EXPECT_EQ(error_code(Tokenizer::from_gguf(*Gguf::parse(bytes)).status()),
            ErrorCode::kUnsupported);
  GgufWriter other;
  other.text("tokenizer.ggml.model", "gpt2");
  other.text("tokenizer.ggml.pre", "llama-bpe");
  const std::vector<std::byte> other_bytes = other.bytes();
  const absl::Status status = Tokenizer::from_gguf(*Gguf::parse(other_bytes)).status();
  EXPECT_EQ(error_code(status), ErrorCode::kUnsupported);
  EXPECT_NE(status.message().find("llama-bpe"), absl::string_view::npos);
}

TEST_F(TextTest, broken_vocabularies_are_invalid_arguments) {
  const auto code = [](const std::vector<std::string>& tokens, const std::vector<int32_t>& types) {
    GgufWriter writer;
    writer.text("tokenizer.ggml.model", "gpt2");
    writer.text("tokenizer.ggml.pre", "smollm");
    writer.texts("tokenizer.ggml.tokens", tokens);
    writer.integers("tokenizer.ggml.token_type", types);
    writer.texts("tokenizer.ggml.merges", {});
    const std::vector<std::byte> bytes = writer.bytes();
    return error_code(Tokenizer::from_gguf(*Gguf::parse(bytes)).status());
  };
  EXPECT_EQ(code({"a"}, {1}), ErrorCode::kInvalidArgument) << "no tokens for other bytes";
  EXPECT_EQ(code({"a", "b"}, {1}), ErrorCode::kInvalidArgument) << "types for some";
  EXPECT_EQ(code({"a", "a"}, {1, 1}), ErrorCode::kInvalidArgument) << "a token twice";
}

TEST_F(TextTest, chat_spans_follow_each_other_and_cover_all) {
  const std::vector<ChatMessage> messages = {
      {Role::kSystem, "be brief"}, {Role::kUser, "hello <|im_end|>"}, {Role::kTool, "42"}};
  const RenderedChat chat = chat_->render(messages);
  EXPECT_EQ(tokenizer_->decode(chat.tokens),
            "<|im_start|>system\nbe brief<|im_end|>\n"
            "<|im_start|>user\nhello <|im_end|><|im_end|>\n"
            "<|im_start|>tool\n42<|im_end|>\n");
  ASSERT_EQ(chat.spans.size(), 3u);
  size_t at = 0;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(chat.spans[i].begin, at);
    EXPECT_EQ(chat.spans[i].role, messages[i].role);
    at = chat.spans[i].end;
  }
  EXPECT_EQ(at, chat.tokens.size());
  EXPECT_EQ(std::count(chat.tokens.begin(), chat.tokens.end(), chat_->end_token()), 3)
      << "text forged a marker";
}

constexpr char kEpisode[] = R"({"name": "two", "system": "S", "turns": [
  {"segments": [{"role": "user", "region": "user", "text": "U"},
                {"role": "assistant", "region": "plan", "text": "P"}],
   "generate": 3, "pause": "waiting_tool"},
  {"segments": [{"role": "tool", "region": "tool_out", "text": "T"}],
   "generate": 2, "pause": "waiting_user"}]})";

TEST_F(TextTest, episode_turns_are_tagged_without_gaps) {
  absl::StatusOr<Episode> episode = parse_episode(kEpisode, *chat_);
  ASSERT_TRUE(episode.ok()) << episode.status();
  ASSERT_EQ(episode->turns.size(), 2u);
  EXPECT_EQ(episode->generated_tokens(), 5u);
  const EpisodeTurn& first = episode->turns[0];
  ASSERT_EQ(first.spans.size(), 4u);
  EXPECT_EQ(first.spans[0].region, Region::kSystem);
  EXPECT_EQ(first.spans[2].region, Region::kPlan);
  EXPECT_EQ(text_of(first, first.spans[2]), "<|im_start|>assistant\nP<|im_end|>\n");
  EXPECT_EQ(text_of(first, first.spans[3]), "<|im_start|>assistant\n");
  EXPECT_EQ(first.pause, SessionState::kWaitingTool);
  const EpisodeTurn& second = episode->turns[1];
  EXPECT_EQ(text_of(second, second.spans[0]), "<|im_end|>\n");
  EXPECT_EQ(second.spans[1].region, Region::kToolOut);
  for (const EpisodeTurn& turn : episode->turns) {
    size_t at = 0;
    for (const RegionSpan& span : turn.spans) {
      EXPECT_EQ(span.begin, at);
      at = span.end;
    }
    EXPECT_EQ(at, turn.tokens.size());
  }
}

TEST_F(TextTest, wrong_episodes_name_the_place) {
  EXPECT_EQ(error_code(refusal("{")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(refusal("[]")), ErrorCode::kInvalidArgument);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string json = kEpisode;
    json.replace(json.find(from), from.size(), to);
    return std::string(refusal(json).message());
  };
  EXPECT_NE(with("\"tool_out\"", "\"nowhere\"").find("turns[1].segments[0].region"),
            std::string::npos);
  EXPECT_NE(with("\"plan\"", "17").find("turns[0].segments[1].region"), std::string::npos);
  EXPECT_NE(with("\"tool\"", "\"robot\"").find("turns[1].segments[0].role"), std::string::npos);
  EXPECT_NE(with("\"generate\": 3", "\"generate\": -3").find("turns[0].generate"),
            std::string::npos);
  EXPECT_NE(with("waiting_user", "sleeping").find("turns[1].pause"), std::string::npos);
  EXPECT_NE(with("\"text\": \"U\"", "\"text\": \"\"").find("turns[0].segments[0].text"),
            std::string::npos);
  EXPECT_NE(with("\"name\"", "\"title\"").find("title"), std::string::npos);
  EXPECT_EQ(error_code(load_episode("/nowhere/episode.json", *chat_).status()),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace memdecay::reference
