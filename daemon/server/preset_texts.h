// The preset files of daemon/policy/presets, built in, so that a name needs no path.
// Thread: constant data. The source is made by the build from the files (CMakeLists.txt).
// Errors: not_found.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace memdecay::server {

// default, paper or practice.
absl::StatusOr<std::string> built_in_preset(std::string_view name);

}  // namespace memdecay::server
