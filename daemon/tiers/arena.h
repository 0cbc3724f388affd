// Arena: places of one size in anonymous memory, got from the machine in chunks and given back when
// a chunk is empty. A place is a plain address; each use of it has a generation, so that what an
// earlier user left there can be told from what the present one wrote.
// Thread: one owner. Invariants: a place is in use or on its chunk's free list; an empty chunk has
// no resident memory, and there is at most one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace memdecay::tiers {

class Arena {
 public:
  // Checked: stride is not 0. A chunk holds about `chunk_bytes`, one place at least.
  Arena(uint64_t stride, uint64_t chunk_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  struct Place {
    std::byte* address = nullptr;
    uint64_t generation = 0;
  };
  // resource_exhausted: the machine has no more. Fresh places are zero, used ones are not.
  absl::StatusOr<Place> take();
  // Checked: it is in use.
  void give_back(const Place& place);

  uint64_t stride() const { return stride_; }
  uint64_t used_places() const { return used_; }
  uint64_t mapped_bytes() const;  // address space; resident only where places were used

 private:
  struct Chunk;

  Chunk& chunk_of(const std::byte* address);
  absl::StatusOr<Chunk*> add_chunk();

  const uint64_t stride_;
  const uint32_t places_a_chunk_;
  uint64_t used_ = 0;
  std::map<const std::byte*, std::unique_ptr<Chunk>> chunks_;  // by start
  std::vector<Chunk*> open_;                                   // with free places; the last is used
};

}  // namespace memdecay::tiers
