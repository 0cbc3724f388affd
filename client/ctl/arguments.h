// What people type: sessions by id or name, pages as 3, 0..7 (inclusive) or 1,4..6, a page of a
// session as SESSION:N, durations as 30s or 500ms.
// Thread: pure functions, any. Not here: flags (main.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "memdecay/v1/admin.pb.h"
#include "proto/contract/clock.h"

namespace memdecay::ctl {

v1::SessionName session_name(const std::string& text);
absl::StatusOr<std::vector<uint32_t>> page_list(const std::string& text);
// One run [first, first + count), as pins need it.
struct PageRun {
  uint32_t first = 0;
  uint32_t count = 0;
};
absl::StatusOr<PageRun> page_run(const std::string& text);
// A decision's number, or SESSION:N.
absl::StatusOr<v1::ExplainRequest> explain_target(const std::string& text);
absl::StatusOr<Duration> duration(const std::string& text);
// 4096, 64K, 64M, 2G: powers of 1024.
absl::StatusOr<uint64_t> byte_count(const std::string& text);

}  // namespace memdecay::ctl
