// Options in layers: what a preset says, above it the configuration, a tenant's keys, a session's.
//
// A layer is a list of keys with their text (keys.h) and one more, "preset". A layer that names
// another preset replaces what lies below it. One that names another policy, or another
// refresh_rule, takes with it only what these can honour: h2o over a memdecay_n with a beta is
// h2o. What the layer itself says is never left out: a beta for h2o is refused.
// Thread: pure functions, any. Errors: invalid_argument that names the key, what is wrong with its
// value and what would be right.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/policy/options.h"

namespace memdecay::policy {

using OptionWord = std::pair<std::string, std::string>;
// By name. A preset's own page_tokens, sinks, recent and grace are not used: they are the daemon's.
using Presets = std::map<std::string, PolicyOptions, std::less<>>;

// The order of the words matters only where two speak of one thing. The result is not checked yet
// (make_policy).
absl::StatusOr<PolicyOptions> layered(PolicyOptions base, absl::Span<const OptionWord> words,
                                      const Presets& presets);

// What is in effect in `options` and is not in `usual`, as keys; both are completed first.
std::vector<OptionWord> differences(const PolicyOptions& options, const PolicyOptions& usual);

}  // namespace memdecay::policy
