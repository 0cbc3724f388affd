// Text of a scenario file -> Script, and a Statement with values for its loop variables -> Call.
// Errors: invalid_argument whose `asked` is "FILE:LINE: what" (unknown statement, unknown option,
// unbalanced braces, unknown variable).
// Thread: pure functions. Not here: reading files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/scenario/syntax.h"

namespace memdecay::scenario {

using Variables = std::map<std::string, int64_t>;

absl::StatusOr<Script> parse_script(std::string_view path, std::string_view text);

// The words of one line; `#` starts a comment; braces that touch a name belong to it
// ("restores_total{outcome=ok}"), others are words of their own.
std::vector<std::string> split_words(std::string_view line);

// "S$i", "$i+1", "$(2*i+1)", "S:$i..$i+3": arithmetic follows a variable as far as it reads on.
absl::StatusOr<std::string> substitute(std::string_view word, const Variables& variables);

absl::StatusOr<Call> resolve_call(const Statement& statement, const Variables& variables);

}  // namespace memdecay::scenario
