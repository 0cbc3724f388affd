// See skips.h.
#include "tests/scenario/skips.h"

#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::scenario {

absl::StatusOr<std::vector<Skip>> parse_skips(std::string_view text) {
  std::vector<Skip> skips;
  int line = 0;
  for (const absl::string_view piece : absl::StrSplit(as_absl(text), '\n')) {
    ++line;
    const absl::string_view entry = absl::StripAsciiWhitespace(piece);
    if (entry.empty() || entry[0] == '#') continue;
    const size_t blank = entry.find_first_of(" \t");
    if (blank == absl::string_view::npos) {
      return make_error(ErrorCode::kInvalidArgument, absl::StrCat("SKIPS:", line),
                        absl::StrCat("'", entry, "' has no reason"), "FILE-OR-ID  REASON");
    }
    skips.push_back({.what = std::string(entry.substr(0, blank)),
                     .reason = std::string(absl::StripAsciiWhitespace(entry.substr(blank))),
                     .line = line});
  }
  return skips;
}

const Skip* find_skip(const std::vector<Skip>& skips, std::string_view path, WorldKind world) {
  const std::string name = std::filesystem::path(path).filename();
  for (const Skip& skip : skips) {
    if (absl::StartsWith(skip.reason, "[sim]") && world != WorldKind::kSim) continue;
    if (absl::StartsWith(skip.reason, "[real]") && world != WorldKind::kReal) continue;
    const bool by_id = absl::StartsWith(name, skip.what + "_") || name == skip.what + ".scn";
    const bool by_file = as_absl(path) == skip.what || name == skip.what ||
                         absl::EndsWith(as_absl(path), "/" + skip.what);
    if (by_id || by_file) return &skip;
  }
  return nullptr;
}

std::string find_skips_file(const std::string& script_path) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(script_path, error).parent_path();
  if (error) return {};
  while (!folder.empty()) {
    const std::filesystem::path candidate = folder / "SKIPS";
    std::error_code nothing_there;
    if (std::filesystem::is_regular_file(candidate, nothing_there)) return candidate;
    if (folder == folder.root_path()) break;
    folder = folder.parent_path();
  }
  return {};
}

}  // namespace memdecay::scenario
