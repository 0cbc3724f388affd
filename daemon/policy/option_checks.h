// What a value of an option may be, whichever policy it is for.
// Thread: pure functions. Errors: invalid_argument whose `asked` is "policy option NAME".
// Not here: which policy honours which option (registry.cc), text (keys.h).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/policy/options.h"

namespace memdecay::policy {

inline constexpr size_t kMostRegions = 1024;

absl::Status refuse_option(std::string_view option, std::string there, std::string todo);

absl::Status check_region(const RegionParameters& region, const std::string& name);
// Ages otherwise than by tokens and a half-life.
bool is_special(const RegionParameters& region);
absl::Status check_own_regions(const PolicyOptions& options);
// The regions that the option names are known.
absl::Status check_named(std::string_view option, absl::Span<const RegionId> regions,
                         const PolicyOptions& options);
absl::Status check_lift(const ExpectedLift& lift, const PolicyOptions& options);

}  // namespace memdecay::policy
