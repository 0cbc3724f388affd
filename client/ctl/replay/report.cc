// Text, JSON, CSV (see report.h); the picture is in svg.cc.
#include "client/ctl/replay/report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace memdecay::ctl {

std::string replay_text(const ReplayResult& result) {
  std::string out = absl::StrFormat("%-10s %10s %10s %10s  %-20s %9s %9s\n", "policy", "capacity",
                                    "prefix", "blocks", "prefix over salts", "MiB", "seconds");
  for (const ReplayRow& row : result.rows) {
    const std::string spread = row.salts == 0
                                   ? ""
                                   : absl::StrFormat("%.4f .. %.4f (%d)", row.prefix_lowest,
                                                     row.prefix_highest, row.salts);
    absl::StrAppendFormat(&out, "%-10s %10d %10.6f %10.6f  %-20s %9.1f %9.2f\n", row.policy,
                          row.capacity, row.prefix_hit_ratio, row.block_hit_ratio, spread,
                          static_cast<double>(row.bytes) / (1 << 20), row.seconds);
  }
  absl::StrAppend(&out, result.requests, " requests, ", result.blocks, " block references, ",
                  result.unique_estimated ? "about " : "", result.unique, " distinct blocks\n");
  return out;
}

std::string replay_json(const ReplayResult& result) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ReplayRow& row : result.rows) {
    nlohmann::ordered_json out = {{"policy", row.policy},
                                  {"capacity", row.capacity},
                                  {"prefix_hit_ratio", row.prefix_hit_ratio},
                                  {"block_hit_ratio", row.block_hit_ratio},
                                  {"seconds", row.seconds},
                                  {"bytes", row.bytes}};
    if (row.salts > 0) {
      out["salts"] = row.salts;
      out["prefix_hit_ratio_min"] = row.prefix_lowest;
      out["prefix_hit_ratio_max"] = row.prefix_highest;
    }
    rows.push_back(std::move(out));
  }
  nlohmann::ordered_json all = {{"rows", std::move(rows)},
                                {"requests", result.requests},
                                {"blocks", result.blocks},
                                {"unique", result.unique}};
  if (result.stores > 0) all["stores"] = result.stores;
  return all.dump() + "\n";
}

std::string replay_csv(const ReplayResult& result) {
  std::string out =
      "policy,capacity,prefix_hit_ratio,block_hit_ratio,seconds,bytes,salts,"
      "prefix_hit_ratio_min,prefix_hit_ratio_max\n";
  for (const ReplayRow& row : result.rows) {
    absl::StrAppendFormat(&out, "%s,%d,%.17g,%.17g,%.6f,%d,", row.policy, row.capacity,
                          row.prefix_hit_ratio, row.block_hit_ratio, row.seconds, row.bytes);
    if (row.salts == 0) {
      out += ",,\n";
    } else {
      absl::StrAppendFormat(&out, "%d,%.17g,%.17g\n", row.salts, row.prefix_lowest,
                            row.prefix_highest);
    }
  }
  return out;
}

}  // namespace memdecay::ctl
