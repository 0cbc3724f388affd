// A replay's figures for people (aligned columns), for scripts (one line of JSON, CSV) and as a
// picture (SVG: prefix hit ratio over capacity, a line a policy).
// Thread: pure functions.
#pragma once

#include <string>

#include "client/ctl/replay/replay.h"

namespace memdecay::ctl {

std::string replay_text(const ReplayResult& result);
// {"rows": [{"policy", "capacity", "prefix_hit_ratio", "block_hit_ratio", "seconds"}], "requests",
// "blocks", "unique"} and, if there were any, "stores"; rows of a policy with salts also have
// "salts", "prefix_hit_ratio_min" and "prefix_hit_ratio_max", all rows "bytes". Ends with a
// newline.
std::string replay_json(const ReplayResult& result);
// A header, then a line a row; empty fields where a policy has no salts.
std::string replay_csv(const ReplayResult& result);
std::string replay_svg(const ReplayResult& result);

}  // namespace memdecay::ctl
