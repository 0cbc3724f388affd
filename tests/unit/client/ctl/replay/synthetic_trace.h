// A trace of requests made up from a seed, in Mooncake's format: conversations that share a few
// system prompts, grow by a turn and are left for a while or for good. small_trace.jsonl beside
// this is synthetic_trace(1, 400), so that everybody has a trace whose ratios are known
// (test_replay.cc).
// Thread: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace memdecay::test {

std::string synthetic_trace(uint64_t seed, size_t requests);

}  // namespace memdecay::test
