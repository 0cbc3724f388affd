// The policies by name, and one use from end to end (see retention.h).
#include "daemon/policy/retention/retention.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/policy/retention/makers.h"
#include "proto/contract/check.h"
#include "proto/contract/error.h"
#include "proto/contract/text.h"

namespace memdecay::retention {
namespace {

constexpr size_t kMostEntries = size_t{1} << 31;  // nodes are numbered with 32 bits

std::string known_names() {
  std::string names;
  for (const std::string_view name : retention_names()) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", as_absl(name));
  }
  return names;
}

}  // namespace

std::vector<std::string_view> retention_names() {
  return {"decay", "lru", "arc", "s3_fifo", "min"};
}

absl::StatusOr<std::unique_ptr<Retention>> make_retention(const RetentionOptions& options) {
  const auto names = retention_names();
  if (std::find(names.begin(), names.end(), options.name) == names.end()) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("retention policy \"", options.name, "\""),
                      "there is no such policy", absl::StrCat("use one of ", known_names()));
  }
  if (options.capacity == 0 || options.capacity > kMostEntries / 8 ||
      options.history > kMostEntries) {
    return make_error(ErrorCode::kInvalidArgument,
                      absl::StrCat("a capacity of ", options.capacity, " entries"),
                      "nothing can be kept in it, or it cannot be numbered",
                      absl::StrCat("use 1 to ", kMostEntries / 8));
  }
  if (options.memory.milliseconds() <= 0 || options.ghost_memory.nanoseconds <= 0 ||
      options.sample == 0 || !(options.hysteresis >= 0)) {
    return make_error(ErrorCode::kInvalidArgument, "constants of decay",
                      "a half-life or the sample is not above 0, or the hysteresis below 0",
                      "leave them at their defaults");
  }
  if (options.name == "lru") return make_lru();
  if (options.name == "arc") return make_arc(options.capacity);
  if (options.name == "s3_fifo") return make_s3_fifo(options.capacity);
  if (options.name == "min") return make_min();
  return make_decay(options);
}

bool use_entry(Retention& retention, const Use& use, size_t capacity) {
  retention.touch(use);
  if (retention.holds(use.key)) return true;
  if (!retention.admits(use)) return false;
  while (retention.size() >= capacity) {
    const auto gone = retention.evict([](EntryKey) { return true; });
    MEMDECAY_CHECK(gone.has_value());
  }
  retention.insert(use);
  return false;
}

}  // namespace memdecay::retention
