// Every option of a policy as a key and a line of text: "beta" = "1", "regions.user.b" = "0.6",
// "expected_lift.user" = "[7, 1.6, 0.4]". One table serves the configuration file, the key=value
// words of scenarios and what a session asks for by RPC, so a key exists in all of them or in none.
// Thread: constant data and pure functions, any. Errors: not_found whose message says what keys
// there are, invalid_argument whose message is a sentence about the value; the caller adds the
// place. Not here: which policy honours which option, and what a number may be (registry.cc).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/policy/options.h"

namespace memdecay::policy {

struct OptionKey {
  std::string_view key;
  std::string_view meaning;
  std::string_view example;  // not empty: its default, for who has not set it
};

// The keys that stand for themselves. Besides them there are
//   regions.REGION.b, .half_life_tokens, .half_life_turns, .half_life_seconds, .doubling_tokens,
//     .doubling_turns, .doubling_seconds, .turn_decay, .held      REGION: a name or a number
//   expected_lift.REGION                                          a table of its own
absl::Span<const OptionKey> option_keys();

const OptionKey* find_option(std::string_view key);

absl::Status set_option(PolicyOptions& options, std::string_view key, std::string_view value);
// As set_option would take it; empty when it is not set.
std::string get_option(const PolicyOptions& options, std::string_view key);
// A region as it is written: its name, or the number of one without.
std::string region_word(const PolicyOptions& options, RegionId region);
std::optional<RegionId> region_of(const PolicyOptions& options, std::string_view word);
// What stands beside option_keys(): regions and their tables, as (key, value).
std::vector<std::pair<std::string, std::string>> tables(const PolicyOptions& options);

}  // namespace memdecay::policy
