// What every byte must be. A key names a text: its token at a position is a function of both. A
// page's content is a function of its tokens and of the contents that its engine saw before it,
// just as keys and values of a model are: the same tokens computed over a hole are another content.
// The bytes are a function of the content and the offset, so a stale, swapped, shifted, truncated
// or poisoned page shows. Thread: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/contract/ids.h"

namespace memdecay::scenario {

// A content's fingerprint; 0 stands for "nothing there" (a hole).
using ContentPrint = uint64_t;

TokenId token_of(std::string_view key, uint32_t position);
std::vector<TokenId> tokens_of(std::string_view key, uint32_t first_page, uint32_t pages,
                               uint32_t page_tokens);

// Folds one more page that was seen (or 0) into the past of the next one.
uint64_t extend_past(uint64_t past, ContentPrint seen);
ContentPrint content_of(uint64_t past, const std::vector<TokenId>& tokens, std::string_view extra);

// `bytes` bytes of the content from `offset` on.
std::string pattern(ContentPrint content, uint64_t offset, uint64_t bytes);

// "offset 17: 3a, expected 5c", or empty when they are equal.
std::string difference(std::string_view actual, std::string_view expected);

}  // namespace memdecay::scenario
