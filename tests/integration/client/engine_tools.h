// An engine's small tools for tests: one layout, and bytes that are a function of their token, so
// that a stale, swapped or shifted page shows. Thread: any. Not here: daemons and expectations
// (daemon_process.h).
#pragma once

#include <cstdint>
#include <vector>

#include "client/memdecay.h"
#include "client/memdecay.hpp"

namespace memdecay::integration {

inline constexpr uint32_t kTokens = 16;  // of a page
inline constexpr uint32_t kPage = 8192;  // bytes

memdecay_layout layout();
// Tokens first, first + 1, … of `pages` pages.
std::vector<uint32_t> tokens(uint32_t first, uint32_t pages);
void fill(const memdecay_page& page, uint32_t first_token);
bool holds(const memdecay_page& page, uint32_t first_token);
// Extends, writes and seals `pages` pages of tokens from `first_token` on; false: refused.
bool grow(const engine::Session& session, uint32_t pages, uint32_t first_token);
// Writing by way of the kernel: false instead of a signal.
bool can_write(const void* address);

}  // namespace memdecay::integration
