// See address_arena.h.
#include "cuda/driver/address_arena.h"

#include <iterator>

namespace memdecay::cuda {

std::optional<uint64_t> AddressArena::take(uint64_t bytes) {
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const auto [address, length] = *at;
    if (length < bytes) continue;
    free_.erase(at);
    if (length > bytes) free_[address + bytes] = length - bytes;
    return address;
  }
  return std::nullopt;
}

void AddressArena::give_back(uint64_t address, uint64_t bytes) {
  auto at = free_.emplace(address, bytes).first;
  if (const auto after = std::next(at);
      after != free_.end() && at->first + at->second == after->first) {
    at->second += after->second;
    free_.erase(after);
  }
  if (at == free_.begin()) return;
  const auto before = std::prev(at);
  if (before->first + before->second != at->first) return;
  before->second += at->second;
  free_.erase(at);
}

}  // namespace memdecay::cuda
