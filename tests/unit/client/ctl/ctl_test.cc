// memdecayctl: arguments that people type, the page map, JSON for scripts, sizes from GGUF headers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/ctl/arguments.h"
#include "client/ctl/json.h"
#include "client/ctl/model_size.h"
#include "client/ctl/page_map.h"
#include "client/ctl/render.h"
#include "proto/contract/error.h"

namespace memdecay::ctl {
namespace {

TEST(Arguments, digits_are_an_id_and_everything_else_a_name) {
  EXPECT_EQ(session_name("17").session(), 17u);
  EXPECT_EQ(session_name("agent-7").name(), "agent-7");
  EXPECT_EQ(session_name("agent-7").session(), 0u);
}

TEST(Arguments, page_lists_are_numbers_ranges_and_commas) {
  EXPECT_EQ(*page_list("3"), std::vector<uint32_t>{3});
  EXPECT_EQ(*page_list("1,4..6"), (std::vector<uint32_t>{1, 4, 5, 6}));
  for (const char* wrong : {"", "a", "3..1", "1,", "..", "0..99999999", "-1", "1..2..3"}) {
    EXPECT_EQ(error_code(page_list(wrong).status()), ErrorCode::kInvalidArgument) << wrong;
  }
}

TEST(Arguments, explain_takes_a_decision_or_a_page_of_a_session) {
  EXPECT_EQ(explain_target("12")->decision(), 12u);
  const auto page = explain_target("agent:7:3");
  EXPECT_EQ(page->page().session().name(), "agent:7");
  EXPECT_EQ(page->page().page(), 3u);
  EXPECT_FALSE(explain_target("agent").ok());
  EXPECT_FALSE(explain_target(":3").ok());
}

TEST(Arguments, durations_need_a_unit) {
  EXPECT_EQ(duration("500ms")->milliseconds(), 500);
  EXPECT_EQ(duration("5m")->milliseconds(), 300000);
  EXPECT_FALSE(duration("5").ok());
  EXPECT_FALSE(duration("s").ok());
}

v1::ListPagesResponse three_pages() {
  v1::ListPagesResponse pages;
  for (uint32_t i = 0; i < 3; ++i) {
    v1::PageInfo& page = *pages.add_pages();
    page.mutable_view()->set_page(i);
    page.mutable_view()->set_state(v1::PAGE_STATE_MAPPED);
    page.set_score(i);
    page.set_on_device(i != 2);
    page.set_on_host(i != 0);
    v1::RegionTokens& part = *page.add_regions();
    part.set_region(i == 0 ? 0 : 6);
    part.set_tokens(16);
  }
  pages.mutable_pages(2)->mutable_view()->set_state(v1::PAGE_STATE_HOLE);
  pages.mutable_pages(1)->mutable_view()->set_approximate(true);
  return pages;
}

TEST(PageMap, plain_map_has_no_escapes_and_shows_region_place_and_approximation) {
  const std::string map = page_map(three_pages(), Colour::kNo, 80);
  EXPECT_EQ(map.find('\x1b'), std::string::npos);
  EXPECT_EQ(map.substr(0, map.find('\n')), "     0 S# s=~so");
}

TEST(PageMap, colour_is_the_region_and_shade_the_rank_of_the_score) {
  const std::string map = page_map(three_pages(), Colour::kYes, 80);
  EXPECT_NE(map.find("48;5;52m#"), std::string::npos) << "system, lowest score";
  EXPECT_NE(map.find("48;5;240m=~"), std::string::npos) << "scratchpad, middle";
  EXPECT_NE(map.find("48;5;244mo"), std::string::npos) << "scratchpad, highest";
}

TEST(Json, numbers_are_numbers_enumerations_are_words_and_absent_messages_null) {
  v1::ListPagesResponse pages = three_pages();
  pages.mutable_session()->set_session(uint64_t{1} << 40);
  pages.mutable_session()->set_state(v1::SESSION_STATE_WAITING_TOOL);
  const auto json = to_json(pages);
  EXPECT_EQ(json["session"]["session"], uint64_t{1} << 40);
  EXPECT_EQ(json["session"]["state"], "waiting_tool");
  EXPECT_EQ(json["pages"][2]["view"]["state"], "hole");
  EXPECT_TRUE(json["pages"][2]["view"]["slot"].is_null());
  EXPECT_EQ(json["pages"][1]["on_host"], true);
}

// GGUF metadata by hand.
class Gguf {
 public:
  Gguf() : bytes_("GGUF") { number<uint32_t>(3).number<uint64_t>(0).number<uint64_t>(0); }
  template <typename Number>
  Gguf& number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Gguf& text(const std::string& value) {
    number<uint64_t>(value.size());
    bytes_ += value;
    return *this;
  }
  Gguf& pair(const std::string& key, uint32_t value) {
    count();
    return text(key).number<uint32_t>(4).number(value);
  }
  Gguf& pair(const std::string& key, const std::string& value) {
    count();
    return text(key).number<uint32_t>(8).text(value);
  }
  Gguf& words(const std::string& key, uint64_t many) {
    count();
    text(key).number<uint32_t>(9).number<uint32_t>(8).number(many);
    for (uint64_t i = 0; i < many; ++i) text("w");
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void count() { ++bytes_[16]; }  // metadata pairs, below 128
  std::string bytes_;
};

Gguf smollm2() {
  Gguf file;
  file.pair("general.architecture", "llama").pair("general.name", "SmolLM2").words("vocabulary", 9);
  file.pair("llama.block_count", 30).pair("llama.embedding_length", 576);
  file.pair("llama.attention.head_count", 9).pair("llama.attention.head_count_kv", 3);
  return file;
}

TEST(ModelSize, bytes_of_a_page_follow_from_layers_and_kv_heads) {
  const auto size = size_of(smollm2().bytes(), 16, "f16");
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(size->head_dim, 64u);
  EXPECT_EQ(size->token_bytes, 23040u);
  EXPECT_EQ(size->page_bytes, 368640u);
}

TEST(ModelSize, truncated_or_foreign_files_are_refused_wherever_they_end) {
  const std::string whole = smollm2().bytes();
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(size_of({whole.data(), length}, 16, "f16").ok()) << length;
  }
  Gguf other;
  other.pair("general.architecture", "mystery");
  EXPECT_EQ(error_code(size_of(other.bytes(), 16, "f16").status()), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(size_of(whole, 16, "f12").ok());
  EXPECT_FALSE(size_of(whole, 0, "f16").ok());
}

TEST(Render, sizes_read_well_and_a_clean_check_says_so) {
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(368640), "360.0 KiB");
  EXPECT_NE(render(v1::CheckResponse()).find("agrees"), std::string::npos);
}

}  // namespace
}  // namespace memdecay::ctl
