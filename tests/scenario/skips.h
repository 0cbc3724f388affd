// The SKIPS file: which scenario files may be skipped, and why. One a line: a file name relative to
// the SKIPS file, or an id ("F57"), then blanks, then the reason; "[sim]" or "[real]" at the start
// of the reason limits it to that world. The nearest SKIPS in a script's folder or above it counts.
// Thread: any; pure but for reading the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/scenario/statements.h"

namespace memdecay::scenario {

struct Skip {
  std::string what;  // "L/F23_rss.scn" or "F23"
  std::string reason;
  int line = 0;
};

absl::StatusOr<std::vector<Skip>> parse_skips(std::string_view text);
// The entry that covers this script in this world, or nullptr. `path` may be relative or absolute.
const Skip* find_skip(const std::vector<Skip>& skips, std::string_view path, WorldKind world);
// Of the SKIPS file that belongs to a script; empty if there is none.
std::string find_skips_file(const std::string& script_path);

}  // namespace memdecay::scenario
