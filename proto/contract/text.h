// Debian's abseil has a string_view of its own: this is the one conversion that absl::StrCat needs.
// Thread: any.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace memdecay {

inline absl::string_view as_absl(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace memdecay
