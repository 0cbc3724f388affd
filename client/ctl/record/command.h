// memdecayctl record: what the daemon sees of its sessions into a trace file (proto/TRACE.md), with
// progress on stderr, until a limit, Ctrl-C or the daemon's end.
// Thread: one. Exit codes: 0 the recording ended as asked (Ctrl-C included); 1 the daemon refused
// or went away, or the file could not be written: what is lost is said; 2 wrong arguments.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/commands.h"

namespace memdecay::ctl {

struct RecordFlags {
  std::string longest = "60s";
  std::string most_bytes = "64M";
  std::string file = "-";
  std::vector<std::string> sessions;
};

int run_record(const Options& options, const RecordFlags& flags);

}  // namespace memdecay::ctl
