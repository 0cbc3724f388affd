// See option_checks.h. NaN is in no range.
#include "daemon/policy/option_checks.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::policy {
namespace {

constexpr double kLargestB = 1048576.0;
constexpr double kShortestHalfLife = 1.0 / 1024.0;
constexpr double kMostTurnDecay = 64.0;
constexpr size_t kLongestName = 32;

absl::Status check_table(const DistanceTable& table) {
  for (double lift : table) {
    if (lift >= 1e-3 && lift <= 1e3) continue;
    return refuse_option("expected_lift", absl::StrCat("holds ", lift), "give 0.001 to 1,000");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status refuse_option(std::string_view option, std::string there, std::string todo) {
  return make_error(ErrorCode::kInvalidArgument, absl::StrCat("policy option ", as_absl(option)),
                    std::move(there), std::move(todo));
}

absl::Status check_region(const RegionParameters& region, const std::string& name) {
  const auto wrong = [&name](std::string_view option, double value, std::string todo) {
    return refuse_option(option, absl::StrCat("of region ", name, " is ", value), std::move(todo));
  };
  if (!(region.b >= 1.0 / kLargestB && region.b <= kLargestB)) {
    return wrong("b", region.b, "give a number from 2^-20 to 2^20");
  }
  if (!(region.half_life >= kShortestHalfLife)) {
    return wrong("half_life", region.half_life, "give at least 2^-10; infinity for no decay");
  }
  if (!(region.doubling >= kShortestHalfLife)) {
    return wrong("doubling", region.doubling, "give at least 2^-10; infinity for no growth");
  }
  if (region.grows() && region.half_life < std::numeric_limits<double>::infinity()) {
    return wrong("doubling", region.doubling, "leave its half-life out: a region grows or decays");
  }
  if (!(region.turn_decay >= 0.0 && region.turn_decay <= kMostTurnDecay)) {
    return wrong("turn_decay", region.turn_decay, "give 0 to 64 half-lives a turn");
  }
  return absl::OkStatus();
}

bool is_special(const RegionParameters& region) {
  return region.clock != Clock::kTokens || region.grows() || region.turn_decay > 0.0 ||
         region.held == Held::kUntilEnded;
}

absl::Status check_own_regions(const PolicyOptions& options) {
  const std::vector<std::string>& names = options.own_regions;
  if (options.known_regions() > kMostRegions) {
    return refuse_option("own_regions", absl::StrCat("make ", options.known_regions(), " regions"),
                         absl::StrCat("have at most ", kMostRegions));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const bool a_word = !names[i].empty() && names[i].size() <= kLongestName &&
                        absl::ascii_islower(static_cast<unsigned char>(names[i].front())) &&
                        std::all_of(names[i].begin(), names[i].end(), [](unsigned char c) {
                          return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
                        });
    if (!a_word) {
      return refuse_option("own_regions", absl::StrCat("has \"", names[i], "\""),
                           "give words of a-z, 0-9 and _, up to 32 characters, a letter first");
    }
    if (region_from_name(names[i]).has_value() || names[i] == "all" ||
        std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
            names.begin() + static_cast<std::ptrdiff_t>(i)) {
      return refuse_option("own_regions", absl::StrCat("has ", names[i], ", which is taken"),
                           "choose another name");
    }
  }
  return absl::OkStatus();
}

absl::Status check_named(std::string_view option, absl::Span<const RegionId> regions,
                         const PolicyOptions& options) {
  for (const RegionId region : regions) {
    if (region < options.known_regions()) continue;
    return refuse_option(option,
                         absl::StrCat("names region ", region, " of ", options.known_regions()),
                         "define the region first");
  }
  return absl::OkStatus();
}

absl::Status check_lift(const ExpectedLift& lift, const PolicyOptions& options) {
  absl::Status status = check_table(lift.of(static_cast<RegionId>(kMostRegions)));
  for (const auto& [region, table] : lift.regions) {
    if (status.ok()) status = check_table(table);
    if (status.ok()) status = check_named("expected_lift", {region}, options);
  }
  return status;
}

}  // namespace memdecay::policy
