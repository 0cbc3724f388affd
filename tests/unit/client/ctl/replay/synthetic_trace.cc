// Conversations (see synthetic_trace.h).
#include "tests/unit/client/ctl/replay/synthetic_trace.h"

#include <random>
#include <vector>

#include "absl/strings/str_cat.h"

namespace memdecay::test {
namespace {

constexpr uint64_t kBlockTokens = 512;
constexpr uint64_t kPrompts = 3;

struct Talk {
  std::vector<uint64_t> blocks;  // whole ones
  uint64_t tail_tokens = 0;      // of the block that is not full yet
};

}  // namespace

std::string synthetic_trace(uint64_t seed, size_t requests) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t bound) { return random() % bound; };
  std::vector<Talk> talks(40);
  uint64_t fresh = kPrompts;
  uint64_t at_ms = 0;
  std::string out;
  for (size_t i = 0; i < requests; ++i) {
    at_ms += below(4000);
    Talk& talk = talks[below(3) == 0 ? below(talks.size()) : below(6)];
    if (talk.blocks.empty() || talk.blocks.size() > 24 || below(10) == 0) {
      talk = {{below(kPrompts)}, below(kBlockTokens)};
    }
    talk.tail_tokens += 100 + below(1200);
    for (; talk.tail_tokens >= kBlockTokens; talk.tail_tokens -= kBlockTokens) {
      talk.blocks.push_back(fresh++);
    }
    std::vector<uint64_t> blocks = talk.blocks;
    if (talk.tail_tokens > 0) blocks.push_back(fresh++);
    const uint64_t input = talk.blocks.size() * kBlockTokens + talk.tail_tokens;
    absl::StrAppend(&out, "{\"timestamp\": ", at_ms, ", \"input_length\": ", input,
                    ", \"output_length\": ", 20 + below(400), ", \"hash_ids\": [");
    for (size_t b = 0; b < blocks.size(); ++b) absl::StrAppend(&out, b == 0 ? "" : ", ", blocks[b]);
    out += "]}\n";
  }
  return out;
}

}  // namespace memdecay::test
