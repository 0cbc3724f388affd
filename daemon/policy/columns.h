// How the columns of a struct of arrays grow: by an eighth, not by doubling, so that what a session
// of any length holds stays near the bytes that its pages need (Policy::kBytesPerPage).
// Thread: pure functions.
#pragma once

#include <cstddef>
#include <vector>

namespace memdecay::policy {

// Makes the column `size` long; new entries are `fill`.
template <typename T>
void fit(std::vector<T>& column, size_t size, const T& fill = T{}) {
  if (size > column.capacity()) column.reserve(size + size / 8 + 16);
  column.resize(size, fill);
}

template <typename T>
size_t bytes_of(const std::vector<T>& column) {
  return column.capacity() * sizeof(T);
}

}  // namespace memdecay::policy
