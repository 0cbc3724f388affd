// Settings of a script -> the daemon's configuration: the scenarios' own defaults (no sinks, no
// recent pages, as scenarios.md says), then the script's keys, then its tenants.
// Thread: pure functions. Errors: those of daemon/server/config.h.
#pragma once

#include "absl/status/statusor.h"
#include "daemon/server/config.h"
#include "tests/scenario/world.h"

namespace memdecay::scenario {

// Keys that a scenario sets before its own.
Settings default_settings();
absl::StatusOr<server::Config> make_config(const DaemonSpec& spec,
                                           server::Occasion occasion = server::Occasion::kStart);

}  // namespace memdecay::scenario
