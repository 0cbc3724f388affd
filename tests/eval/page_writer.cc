// Counting and filling; see page_writer.h.
#include "tests/eval/page_writer.h"

namespace memdecay::eval {

using reference::SpecialTokens;

void PageWriter::begin_segment(Region region, std::vector<std::string> padding) {
  region_ = region;
  begin_ = tokens_.size();
  padding_ = std::move(padding);
  padded_ = 0;
}

void PageWriter::text(const std::string& text) {
  tokens(tokenizer_.encode(text, SpecialTokens::kPlain));
}

void PageWriter::tokens(const std::vector<TokenId>& tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

bool PageWriter::fill_page(const std::vector<TokenId>& last) {
  const size_t used = (tokens_.size() + last.size()) % kPageTokens;
  if (used != 0) {
    if (padded_ == padding_.size()) return false;
    const std::vector<TokenId> talk = tokenizer_.encode(padding_[padded_++], SpecialTokens::kPlain);
    const std::vector<TokenId> stop = tokenizer_.encode(".", SpecialTokens::kPlain);
    const size_t gap = kPageTokens - used;
    if (talk.size() < gap || stop.size() != 1) return false;
    tokens_.insert(tokens_.end(), talk.begin(), talk.begin() + static_cast<long>(gap) - 1);
    tokens_.push_back(stop.front());
  }
  tokens(last);
  return true;
}

void PageWriter::end_segment() { spans_.push_back({begin_, tokens_.size(), region_}); }

}  // namespace memdecay::eval
