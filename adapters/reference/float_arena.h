// Memory for many float arrays, taken from the system once.
//
// Why: weights and work space have a size known in advance; after construction the engine's own
// memory does not grow with the context.
// Thread: take() by the owner; the arrays by whoever was given them.
// Invariants: arrays start at 64-byte boundaries, are zero at first, and live as long as the arena.
// Not here: giving single arrays back.
#pragma once

#include <cstddef>
#include <span>

namespace memdecay::reference {

class FloatArena {
 public:
  // Bytes that an array of `count` floats takes in an arena.
  static size_t footprint(size_t count) { return (count * sizeof(float) + 63) / 64 * 64; }

  // `bytes` is the sum of the footprints. The process ends if the system has no memory at all.
  explicit FloatArena(size_t bytes);
  ~FloatArena();
  FloatArena(FloatArena&& other) noexcept;
  FloatArena& operator=(FloatArena&& other) noexcept;
  FloatArena(const FloatArena&) = delete;
  FloatArena& operator=(const FloatArena&) = delete;

  std::span<float> take(size_t count);

 private:
  void unmap();

  std::byte* base_ = nullptr;
  size_t size_ = 0;
  size_t used_ = 0;
};

}  // namespace memdecay::reference
