// See arena.h. Memory is faulted in by whoever writes it first (the mover), never here.
#include "daemon/tiers/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"

namespace memdecay::tiers {
namespace {

// Bounds the free lists of arenas with tiny places.
constexpr uint64_t kMostPlacesAChunk = 4096;
// From this stride on transparent huge pages save faults and waste little.
constexpr uint64_t kHugePageStride = uint64_t{64} << 10;

uint32_t places_for(uint64_t stride, uint64_t chunk_bytes) {
  MEMDECAY_CHECK(stride > 0);
  return static_cast<uint32_t>(std::clamp<uint64_t>(chunk_bytes / stride, 1, kMostPlacesAChunk));
}

}  // namespace

struct Arena::Chunk {
  Chunk(std::byte* memory, uint64_t length, uint32_t places)
      : start(memory), bytes(length), generations(places, 0), free(places) {
    // Lowest places first: a chunk that is not full touches little memory.
    for (uint32_t i = 0; i < places; ++i) free[i] = places - 1 - i;
  }
  ~Chunk() { ::munmap(start, bytes); }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  bool empty() const { return free.size() == generations.size(); }

  std::byte* const start;
  const uint64_t bytes;
  std::vector<uint64_t> generations;  // odd: in use
  std::vector<uint32_t> free;
};

Arena::Arena(uint64_t stride, uint64_t chunk_bytes)
    : stride_(stride), places_a_chunk_(places_for(stride, chunk_bytes)) {}

Arena::~Arena() = default;

absl::StatusOr<Arena::Chunk*> Arena::add_chunk() {
  const uint64_t bytes = stride_ * places_a_chunk_;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return make_error(ErrorCode::kResourceExhausted, absl::StrCat(bytes, " bytes of host memory"),
                      std::strerror(errno), "lower host.bytes or free memory on this machine");
  }
  ::madvise(memory, bytes, MADV_DONTFORK);
  ::madvise(memory, bytes, stride_ >= kHugePageStride ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  auto* start = static_cast<std::byte*>(memory);
  auto& chunk = chunks_[start] = std::make_unique<Chunk>(start, bytes, places_a_chunk_);
  return chunk.get();
}

absl::StatusOr<Arena::Place> Arena::take() {
  if (open_.empty()) {
    absl::StatusOr<Chunk*> chunk = add_chunk();
    if (!chunk.ok()) return chunk.status();
    open_.push_back(*chunk);
  }
  Chunk& chunk = *open_.back();
  const uint32_t index = chunk.free.back();
  chunk.free.pop_back();
  if (chunk.free.empty()) open_.pop_back();
  ++used_;
  return Place{chunk.start + index * stride_, ++chunk.generations[index]};
}

Arena::Chunk& Arena::chunk_of(const std::byte* address) {
  auto at = chunks_.upper_bound(address);
  MEMDECAY_CHECK(at != chunks_.begin());
  --at;
  MEMDECAY_CHECK(address < at->second->start + at->second->bytes);
  return *at->second;
}

void Arena::give_back(const Place& place) {
  Chunk& chunk = chunk_of(place.address);
  const auto offset = static_cast<uint64_t>(place.address - chunk.start);
  const auto index = static_cast<uint32_t>(offset / stride_);
  MEMDECAY_CHECK(offset % stride_ == 0 && chunk.generations[index] == place.generation &&
                 place.generation % 2 == 1);
  ++chunk.generations[index];
  if (chunk.free.empty()) open_.push_back(&chunk);
  chunk.free.push_back(index);
  --used_;
  if (!chunk.empty()) return;
  const bool another = std::any_of(open_.begin(), open_.end(), [&chunk](const Chunk* other) {
    return other != &chunk && other->empty();
  });
  if (another) {
    std::erase(open_, &chunk);
    chunks_.erase(chunk.start);
  } else {
    ::madvise(chunk.start, chunk.bytes, MADV_DONTNEED);
  }
}

uint64_t Arena::mapped_bytes() const { return chunks_.size() * stride_ * places_a_chunk_; }

}  // namespace memdecay::tiers
