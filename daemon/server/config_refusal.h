// How a configuration key is named in a refusal: key and line, what is wrong, what would be right.
// Thread: pure functions, any thread. Not here: the checks themselves (config.cc, config_check.cc).
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/server/config.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::server {

// "device.pages (line 3)"; without a line when the key came from a word.
inline std::string place(const Config& config, std::string_view key) {
  const auto found = config.lines.find(std::string(key));
  if (found == config.lines.end() || found->second == 0) return std::string(key);
  return absl::StrCat(as_absl(key), " (line ", found->second, ")");
}

inline absl::Status refuse(const Config& config, std::string_view key, std::string there,
                           std::string todo) {
  return make_error(ErrorCode::kInvalidArgument, place(config, key), std::move(there),
                    std::move(todo));
}

}  // namespace memdecay::server
