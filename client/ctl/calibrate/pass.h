// One pass over the trace files of a calibration: lines, events, progress, interruption.
// Thread: main. Memory: a line. Errors: what the reader and the parser refuse, with file and line;
// data_loss, that it is truncated, where a file ends inside its last line; cancelled: interrupted.
// Not here: what is made of the events.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/ctl/replay/attend.h"
#include "daemon/policy/trace/event.h"

namespace memdecay::ctl {

struct PassCounts {
  uint64_t events = 0;
  uint64_t ignored_fields = 0;
  uint64_t ignored_events = 0;
  std::string an_ignored_name;
};

// Calls `begin` with each file's header, `take` with each event, `end` at each file's end.
struct PassCalls {
  absl::FunctionRef<absl::Status(const trace::Header&)> begin;
  absl::FunctionRef<absl::Status(const trace::Event&)> take;
  absl::FunctionRef<absl::Status()> end;
};
absl::StatusOr<PassCounts> pass_over(const std::vector<std::string>& files, const char* what,
                                     const Interrupts& interrupts, PassCalls calls);

}  // namespace memdecay::ctl
