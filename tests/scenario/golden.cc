// See golden.h.
#include "tests/scenario/golden.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "tests/scenario/text_file.h"
#include "tests/support/golden_policy.h"

namespace memdecay::scenario {

int run_golden_folder(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".json") paths.push_back(entry->path());
  }
  std::sort(paths.begin(), paths.end());
  int failed = 0;
  for (const std::string& path : paths) {
    const absl::StatusOr<std::string> text = read_text_file(path);
    if (!text.ok()) {
      ++failed;
      std::printf("failed  %s: %s\n", path.c_str(), std::string(text.status().message()).c_str());
      continue;
    }
    const absl::StatusOr<test::GoldenResult> result = test::run_golden_history(*text);
    if (!result.ok() || !result->differences.empty()) {
      ++failed;
      const std::string why =
          result.ok() ? result->differences.front() : std::string(result.status().message());
      std::printf("failed  %s: %s\n", path.c_str(), why.c_str());
      continue;
    }
    std::printf("passed  %s: %s, %zu events, %zu decisions, %zu victims\n", path.c_str(),
                result->policy.c_str(), result->events, result->decisions, result->victims);
  }
  if (paths.empty()) {
    std::printf("failed  no histories in %s\n", folder.c_str());
    return 1;
  }
  return failed;
}

}  // namespace memdecay::scenario
