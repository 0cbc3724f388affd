// Writes text onto pages: everything that must begin a page does, padding fills what is left.
//
// Why: see scenario.h; this is the part that counts tokens.
// Thread: a value.
// Invariants: tokens are only added; a span is closed at a page's end.
// Not here: what the texts mean (scenario.cc).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "adapters/reference/episode.h"
#include "adapters/reference/tokenizer.h"
#include "tests/eval/scenario.h"

namespace memdecay::eval {

class PageWriter {
 public:
  explicit PageWriter(const reference::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // What the following gaps are filled with, one text a gap, from the front.
  void begin_segment(Region region, std::vector<std::string> padding);
  void text(const std::string& text);
  void tokens(const std::vector<TokenId>& tokens);
  // Fills the page in work, if any, so that `last` just ends a page. False: no padding is left.
  [[nodiscard]] bool fill_page(const std::vector<TokenId>& last = {});
  // The segment's tokens, closed at a page's end, become a span.
  void end_segment();

  size_t position() const { return tokens_.size(); }
  PageIndex page() const { return static_cast<PageIndex>(tokens_.size() / kPageTokens); }
  std::vector<TokenId> take_tokens() { return std::move(tokens_); }
  std::vector<reference::RegionSpan> take_spans() { return std::move(spans_); }

 private:
  const reference::Tokenizer& tokenizer_;
  std::vector<TokenId> tokens_;
  std::vector<reference::RegionSpan> spans_;
  std::vector<std::string> padding_;
  size_t padded_ = 0;  // texts of padding_ that are used up
  Region region_ = Region::kUser;
  size_t begin_ = 0;
};

}  // namespace memdecay::eval
