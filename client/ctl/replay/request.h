// One request of a trace: blocks that somebody needs at once, in order; or blocks that were stored
// and that nobody has asked for.
// Thread: a value. Not here: where requests come from (trace.h, recorded.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/contract/clock.h"

namespace memdecay::ctl {

inline constexpr size_t kBlocksARequest = size_t{1} << 20;

struct TraceRequest {
  Instant at;
  std::vector<uint64_t> blocks;
  uint32_t depth = 0;  // blocks of its chain before the first one, which its session holds
  enum class Tail : uint8_t { kWhole, kPartial } tail = Tail::kWhole;
  // kStored: held from here on, no hit and no miss.
  enum class Kind : uint8_t { kAsked, kStored } kind = Kind::kAsked;
};

}  // namespace memdecay::ctl
