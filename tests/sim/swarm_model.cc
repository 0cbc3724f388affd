// See swarm_model.h.
#include "tests/sim/swarm_model.h"

#include <algorithm>
#include <cstring>

#include "cuda/checksum.h"
#include "daemon/base/random.h"

namespace memdecay::sim {

ledger::LayoutRef swarm_layout() {
  return {.name_space = {{7}}, .page_tokens = kSwarmPageTokens, .page_bytes = kSwarmPageBytes};
}

PageBytes pattern(uint64_t seed) {
  base::Random random(seed);
  PageBytes bytes(kSwarmPageBytes);
  for (size_t at = 0; at < bytes.size(); at += 8) {
    const uint64_t word = random.next();
    std::memcpy(&bytes[at], &word, 8);
  }
  return bytes;
}

Checksum checksum_of_pattern(uint64_t seed) { return cuda::checksum_of(pattern(seed)); }

TokenId token_of(uint32_t document, uint32_t position) {
  return static_cast<TokenId>(base::Random(uint64_t{document} << 32 | position).next() & 0xffff);
}

std::vector<TokenId> page_of(uint32_t document, size_t page) {
  std::vector<TokenId> tokens;
  for (uint32_t i = 0; i < kSwarmPageTokens; ++i) {
    tokens.push_back(token_of(document, static_cast<uint32_t>(page) * kSwarmPageTokens + i));
  }
  return tokens;
}

uint64_t extend_chain(uint64_t chain, std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) chain = base::Random(chain ^ token).next();
  return chain;
}

size_t ModelSession::sealed() const {
  const auto open = std::find_if(pages.begin(), pages.end(), [](const ModelPage& page) {
    return page.phase < ModelPage::Phase::kSealing;
  });
  return static_cast<size_t>(open - pages.begin());
}

uint64_t ModelSession::chain() const {
  uint64_t chain = tenant.value;
  for (const ModelPage& page : pages) chain = extend_chain(chain, page.tokens);
  return chain;
}

bool ModelSession::tainted() const {
  return std::any_of(pages.begin(), pages.end(), [](const ModelPage& page) {
    return page.purity == ModelPage::Purity::kTainted ||
           (page.phase >= ModelPage::Phase::kSealing && !page.slot);
  });
}

}  // namespace memdecay::sim
