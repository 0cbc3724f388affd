// One anonymous mapping, huge pages where the system offers them.
#include "adapters/reference/float_arena.h"

#include <sys/mman.h>

#include <utility>

#include "proto/contract/check.h"

namespace memdecay::reference {

FloatArena::FloatArena(size_t bytes) : size_(bytes == 0 ? 64 : bytes) {
  void* address =
      ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MEMDECAY_CHECK(address != MAP_FAILED);
  ::madvise(address, size_, MADV_HUGEPAGE);  // a wish; refusal costs only speed
  base_ = static_cast<std::byte*>(address);
}

FloatArena::FloatArena(FloatArena&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      used_(std::exchange(other.used_, 0)) {}

FloatArena& FloatArena::operator=(FloatArena&& other) noexcept {
  if (this != &other) {
    unmap();
    base_ = std::exchange(other.base_, nullptr);
    size_ = std::exchange(other.size_, 0);
    used_ = std::exchange(other.used_, 0);
  }
  return *this;
}

FloatArena::~FloatArena() { unmap(); }

void FloatArena::unmap() {
  if (base_ != nullptr) ::munmap(base_, size_);
}

std::span<float> FloatArena::take(size_t count) {
  MEMDECAY_CHECK(footprint(count) <= size_ - used_);
  float* at = reinterpret_cast<float*>(base_ + used_);
  used_ += footprint(count);
  return {at, count};
}

}  // namespace memdecay::reference
