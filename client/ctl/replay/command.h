// memdecayctl replay: a trace file through retention policies, figures on stdout, progress on
// stderr. Asks no daemon.
// Thread: one. Exit codes: 0 good; 1 interrupted, or the picture cannot be written; 2 the trace or
// the arguments are refused, in words that name file and line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memdecay::ctl {

struct ReplayFlags {
  std::string file;
  std::vector<std::string> policies;
  std::vector<std::string> capacities;  // as typed
  uint32_t salts = 10;
  enum class Print : uint8_t { kText, kJson, kCsv } print = Print::kText;
  std::string svg;  // a file to write; empty: none
};

int run_replay(const ReplayFlags& flags);

}  // namespace memdecay::ctl
