// The page map: a session's pages as cells, one glance. On a terminal a cell's colour is its
// region, its shade the score's rank, its mark the place of the bytes; without colour a letter
// stands for the region. Thread: pure functions, any. Not here: asking the daemon (admin.h).
#pragma once

#include <cstdint>
#include <string>

#include "memdecay/v1/admin.pb.h"

namespace memdecay::ctl {

enum class Colour : uint8_t { kNo, kYes };

// Where the bytes are: '#' device, '=' device and a copy below, 'o' host only, 'x' dropped,
// 'w' being written, '?' on its way, ' ' nowhere. Approximate pages are marked '~' behind it.
char place_mark(const v1::PageInfo& page);

// Rows of cells with a legend below; ends with a newline.
std::string page_map(const v1::ListPagesResponse& pages, Colour colour, uint32_t columns);

}  // namespace memdecay::ctl
