// `engine E1 layout=A dtype=bf16 rev=2 page=64KiB …` -> a whole Layout. Every option is a field, so
// that a script can make two layouts differ in one; nothing is checked here: wrong ones are the
// daemon's to refuse.
// Thread: pure functions.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/contract/layout.h"
#include "tests/scenario/syntax.h"

namespace memdecay::scenario {

struct LayoutDefaults {
  uint64_t page_bytes = 256;
  uint32_t page_tokens = 16;
};

absl::StatusOr<Layout> make_layout(const Call& call, const LayoutDefaults& defaults);

}  // namespace memdecay::scenario
