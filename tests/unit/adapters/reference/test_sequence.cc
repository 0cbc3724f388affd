// A sequence over pages that it does not own: what it seals, claims, computes again and reports.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "adapters/reference/commands.h"
#include "adapters/reference/private_store.h"
#include "adapters/reference/sequence.h"
#include "proto/contract/error.h"
#include "tests/unit/adapters/reference/gguf_writer.h"

namespace memdecay::reference {
namespace {

// Private pages that can be hidden, and a record of what was said.
class RecordingStore final : public PageStore {
 public:
  explicit RecordingStore(const KvLayout& layout) : pages_(layout) {}

  absl::Status extend(uint32_t pages) override { return pages_.extend(pages); }
  absl::Status begin_step() override {
    in_step_ = true;
    return absl::OkStatus();
  }
  absl::StatusOr<PageTable> table() override {
    const absl::StatusOr<PageTable> table = pages_.table();
    read_.assign(table->read.begin(), table->read.end());
    for (const size_t page : hidden) read_[page] = nullptr;
    return PageTable{read_, table->write};
  }
  Masses masses_wanted(Work work) const override {
    return work == Work::kPrefill ? Masses::kReported : decoding;
  }
  absl::Status seal(PageIndex first, std::span<const TokenId> tokens, Holes holes) override {
    EXPECT_TRUE(in_step_) << "a page could leave before it is sealed";
    absl::StrAppend(&sealed, first, "+", tokens.size() / 16,
                    holes == Holes::kNone ? " " : (holes == Holes::kSome ? "h " : "? "));
    return absl::OkStatus();
  }
  absl::Status end_step(const StepReport& report) override {
    in_step_ = false;
    observed += report.masses != nullptr ? 1 : 0;
    if (report.masses != nullptr) queries.push_back(report.masses->queries);
    return absl::OkStatus();
  }
  absl::Status truncate(size_t tokens) override { return pages_.truncate(tokens); }
  absl::Status tag(std::span<const PageTag>) override { return absl::OkStatus(); }
  absl::Status park(SessionState) override { return absl::OkStatus(); }
  absl::Status unpark() override { return absl::OkStatus(); }
  absl::Status await_pages() override {
    ++awaited;
    hidden = hidden_after_wait;
    return absl::OkStatus();
  }
  absl::StatusOr<PageCounts> counts() override { return pages_.counts(); }

  std::vector<size_t> hidden;
  std::vector<size_t> hidden_after_wait;
  int awaited = 0;
  std::string sealed;
  int observed = 0;
  std::vector<size_t> queries;
  Masses decoding = Masses::kIgnored;

 private:
  PrivateStore pages_;
  std::vector<const std::byte*> read_;
  bool in_step_ = false;
};

class SequenceTest : public testing::Test {
 protected:
  SequenceTest() : bytes_(tiny_model_gguf({})), gguf_(*Gguf::parse(bytes_)), pool_(1) {
    model_ = std::make_unique<Model>(*Model::load(gguf_, pool_));
    decoder_ = std::make_unique<Decoder>(*model_, pool_, KvType::kF16, KernelChoice::kBest);
    store_ = std::make_unique<RecordingStore>(decoder_->layout());
  }

  Sequence sequence(Promise promise, size_t chunk) {
    return {*decoder_, *store_, promise, chunk, [](Phase) {}};
  }
  static std::vector<TokenId> tokens(size_t count) {
    std::vector<TokenId> out;
    for (size_t i = 0; i < count; ++i) out.push_back(static_cast<TokenId>(i * 7 % 250));
    return out;
  }
  std::vector<float> logits(Sequence& sequence) {
    const absl::StatusOr<std::span<const float>> row = sequence.logits();
    EXPECT_TRUE(row.ok()) << row.status();
    return {row->begin(), row->end()};
  }

  std::vector<std::byte> bytes_;
  Gguf gguf_;
  ThreadPool pool_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<RecordingStore> store_;
};

TEST_F(SequenceTest, full_pages_are_sealed_in_order_once_inside_their_step) {
  Sequence sequence = this->sequence(Promise::kExact, 40);
  sequence.append(tokens(70));
  ASSERT_TRUE(sequence.catch_up().ok());
  EXPECT_EQ(store_->sealed, "0+2 2+2 ");
  EXPECT_EQ(sequence.sealed_pages(), 4u);
  for (const TokenId token : tokens(10)) {
    sequence.accept(token);
    ASSERT_TRUE(sequence.catch_up().ok());
  }
  EXPECT_EQ(store_->sealed, "0+2 2+2 4+1 ");
  EXPECT_EQ(sequence.step(), 10u);
  EXPECT_EQ(sequence.counters().recomputed, 0u);
}

TEST_F(SequenceTest, prefill_steps_are_observed) {
  Sequence sequence = this->sequence(Promise::kExact, 32);
  sequence.append(tokens(64));
  ASSERT_TRUE(sequence.catch_up().ok());
  EXPECT_EQ(store_->observed, 2);
  sequence.accept(3);
  ASSERT_TRUE(sequence.catch_up().ok());
  EXPECT_EQ(store_->observed, 2);
}

TEST_F(SequenceTest, a_report_of_decoding_tells_of_all_tokens_since_the_last_one) {
  Sequence sequence = this->sequence(Promise::kExact, 32);
  sequence.append(tokens(32));
  ASSERT_TRUE(sequence.catch_up().ok());
  for (const Masses wanted :
       {Masses::kLater, Masses::kIgnored, Masses::kLater, Masses::kReported, Masses::kReported}) {
    store_->decoding = wanted;
    sequence.accept(3);
    ASSERT_TRUE(sequence.catch_up().ok());
  }
  // A prefill reports its own queries, whatever was decoded before it.
  store_->decoding = Masses::kLater;
  sequence.accept(5);
  sequence.append(tokens(9));
  ASSERT_TRUE(sequence.catch_up().ok());
  const std::vector<size_t> expected = {32, 3, 1, 10};
  EXPECT_EQ(store_->queries, expected);
}

PageMasses masses(size_t queries, double sink, double tail, std::vector<PageMass> listed) {
  return {.listed = std::move(listed), .sink = sink, .tail = tail, .queries = queries};
}

TEST(MassWindow, is_the_mean_by_queries_and_still_sums_to_one) {
  const std::byte there{};
  MassWindow window;
  window.add(masses(1, 0.5, 0.5, {}));
  window.add(masses(3, 0.1, 0.1, {{0, 0.2}, {1, 0.6}}));
  const PageMasses mean = window.take(std::vector{&there, &there});
  EXPECT_EQ(mean.queries, 4u);
  EXPECT_DOUBLE_EQ(mean.sink, 0.2);
  EXPECT_DOUBLE_EQ(mean.tail, 0.2);
  ASSERT_EQ(mean.listed.size(), 2u);
  EXPECT_DOUBLE_EQ(mean.listed[0].mass, 0.15);
  EXPECT_DOUBLE_EQ(mean.listed[1].mass, 0.45);
  EXPECT_EQ(window.take({}).queries, 0u) << "what was taken is not there again";
}

TEST(MassWindow, pages_that_are_gone_leave_their_share_to_the_others) {
  const std::byte there{};
  MassWindow window;
  window.add(masses(2, 0.2, 0.2, {{0, 0.5}, {1, 0.1}}));
  const PageMasses mean = window.take(std::vector<const std::byte*>{nullptr, &there});
  ASSERT_EQ(mean.listed.size(), 1u);
  EXPECT_EQ(mean.listed[0].page, 1u);
  EXPECT_DOUBLE_EQ(mean.sink, 0.4);
  EXPECT_DOUBLE_EQ(mean.listed[0].mass + mean.sink + mean.tail, 1.0);
}

TEST_F(SequenceTest, logits_come_back_after_a_cut_with_the_same_bits) {
  Sequence sequence = this->sequence(Promise::kExact, 128);
  sequence.append(tokens(48));
  const std::vector<float> at_page_end = logits(sequence);
  sequence.append(tokens(5));
  const std::vector<float> inside = logits(sequence);
  sequence.append(tokens(9));
  ASSERT_TRUE(sequence.catch_up().ok());
  ASSERT_TRUE(sequence.truncate(53).ok());
  EXPECT_EQ(logits(sequence), inside);
  ASSERT_TRUE(sequence.truncate(48).ok());
  EXPECT_EQ(logits(sequence), at_page_end);
}

TEST_F(SequenceTest, an_exact_session_refuses_to_compute_with_a_hole) {
  Sequence sequence = this->sequence(Promise::kExact, 128);
  sequence.append(tokens(48));
  ASSERT_TRUE(sequence.catch_up().ok());
  store_->hidden = store_->hidden_after_wait = {1};
  sequence.accept(1);
  EXPECT_EQ(error_code(sequence.catch_up()), ErrorCode::kInternal);
  EXPECT_EQ(sequence.computed(), 48u);
}

TEST_F(SequenceTest, an_exact_session_waits_for_a_page_that_is_missing) {
  Sequence sequence = this->sequence(Promise::kExact, 128);
  sequence.append(tokens(48));
  ASSERT_TRUE(sequence.catch_up().ok());
  store_->hidden = {1};
  sequence.accept(1);
  EXPECT_TRUE(sequence.catch_up().ok());
  EXPECT_EQ(store_->awaited, 1);
  EXPECT_EQ(sequence.counters().with_holes, 0u);
}

TEST_F(SequenceTest, pages_computed_with_a_hole_are_said_to_be) {
  Sequence sequence = this->sequence(Promise::kLossy, 16);
  sequence.append(tokens(40));
  ASSERT_TRUE(sequence.catch_up().ok());
  store_->hidden = {1};
  for (int i = 0; i < 4; ++i) sequence.accept(9);
  ASSERT_TRUE(sequence.catch_up().ok());
  store_->hidden = {};  // back again, too late for the page that is open
  sequence.append(tokens(24));
  ASSERT_TRUE(sequence.catch_up().ok());
  EXPECT_EQ(store_->sealed, "0+1? 1+1? 2+1h 3+1h ");
  EXPECT_EQ(sequence.counters().with_holes, 4u);
}

TEST_F(SequenceTest, what_is_cut_away_taints_nothing) {
  Sequence sequence = this->sequence(Promise::kLossy, 16);
  sequence.append(tokens(32));
  ASSERT_TRUE(sequence.catch_up().ok());
  const std::vector<float> whole = logits(sequence);
  store_->hidden = {0};
  sequence.append(tokens(16));
  ASSERT_TRUE(sequence.catch_up().ok());
  store_->hidden = {};
  ASSERT_TRUE(sequence.discard(32).ok());
  ASSERT_TRUE(sequence.catch_up().ok());
  EXPECT_EQ(store_->sealed, "0+1? 1+1? 2+1h 2+1? ");
  EXPECT_EQ(sequence.counters().recomputed, 16u);
  ASSERT_TRUE(sequence.truncate(32).ok());
  EXPECT_EQ(logits(sequence), whole);
}

TEST(Commands, page_lists_are_read_strictly) {
  EXPECT_EQ(*parse_pages("3,7..9"), (std::vector<PageIndex>{3, 7, 8, 9}));
  for (const char* wrong : {"", "a", "3..", "9..7", "1,,2", "-1", "1..99999999"}) {
    EXPECT_EQ(error_code(parse_pages(wrong).status()), ErrorCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace memdecay::reference
