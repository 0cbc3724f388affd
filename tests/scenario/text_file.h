// A whole file as text.
// Thread: any. Errors: not_found with the path.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/statusor.h"
#include "proto/contract/error.h"

namespace memdecay::scenario {

inline absl::StatusOr<std::string> read_text_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return make_error(ErrorCode::kNotFound, path, "cannot be read", "give an existing file");
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace memdecay::scenario
