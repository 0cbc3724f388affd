// A whole file mapped read-only.
//
// Why: weights are read once, in place, without a second copy of the file in memory.
// Thread: immutable after open(); any thread may read bytes().
// Invariant: bytes() stays at one address until the object is destroyed, moves included.
// Not here: what the bytes mean (gguf.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace memdecay::reference {

class MappedFile {
 public:
  // not_found when there is no such file; invalid_argument when it is empty or not a plain file.
  static absl::StatusOr<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}
  void unmap();

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace memdecay::reference
