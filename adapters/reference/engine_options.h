// The command line of memdecay-engine.
//
// Thread: a value.
// Invariant: parsed options do not contradict each other.
// Not here: what they do (engine.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "adapters/reference/daemon_store.h"

namespace memdecay::reference {

struct EngineOptions {
  std::string model;
  std::string episode;
  std::string prompt;
  bool commands = false;               // take commands from standard input
  bool standalone = false;             // private memory, no daemon
  bool wait_go = false;                // after each pause wait for a line on standard input
  bool share = true;                   // look for pages that others have computed
  bool trace = false;                  // an event for each token and each phase
  std::string hold;                    // PHASE:N: stand still there until a line comes
  std::string budget;                  // pages, or "25%" of the episode's
  size_t generate = 64;                // tokens after a prompt
  size_t chunk = 128;                  // tokens of one prefill step
  std::string observe_heads = "late";  // whose attention is reported: all, late, LAYER:HEAD,...
  int threads = 2;
  std::string logits;      // file of events
  std::string raw_logits;  // file of float32 rows
  std::string follow;      // events of another run whose tokens are taken instead of the best ones
  DaemonOptions daemon;
};

struct ParsedOptions {
  std::optional<EngineOptions> options;  // nullopt: the program ends now
  int exit_code = 0;
};

ParsedOptions parse_engine_options(int argc, const char* const* argv);

}  // namespace memdecay::reference
