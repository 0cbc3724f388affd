// What one agent's episode looked like to a daemon: pages as they were sealed, attention as it was
// observed, the facts that the episode holds and where they lie.
//
// A recording is two files: a trace (proto/TRACE.md) of one session whose model saw everything, and
// its facts. The trace may hold an observation several times, once for each channel: a channel is a
// choice of layers and heads ("all", "late", "L20H3"). Channels joined by + are averaged here.
// Thread: any; values. Not here: how a recording is made, what is asked of it (replay.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/policy/trace/event.h"
#include "proto/contract/ids.h"

namespace memdecay::eval {

// Where a fact lies; its words are the scenario's.
struct FactPlace {
  std::string id;
  std::string region;
  std::string planting;                                      // "opening" or "random"
  enum class Used : uint8_t { kNo, kYes } used = Used::kNo;  // in the decoded part
  std::vector<PageIndex> pages;
};

struct RecordedSession {
  uint64_t seed = 0;
  uint32_t page_tokens = 0;
  uint32_t pages = 0;  // sealed, in the end
  // Observed only in the channels that were asked for, under the names they were asked for by.
  std::vector<std::variant<trace::Sealed, trace::Tagged, trace::Observed>> moments;
  std::vector<FactPlace> facts;
};

// `trace` is FILE.trace.gz or FILE.trace; its facts stand in FILE.facts.json. A channel may be
// missing from some observations, or from all: heads are recorded one by one only now and then.
// invalid_argument names the file and what is wrong with it: no trace, more than one session, pages
// out of order, a part of a channel missing, facts on no page. data_loss: the file ends early.
absl::StatusOr<RecordedSession> read_recording(const std::string& trace,
                                               const std::vector<std::string>& channels);

struct RecordingFile {
  std::string path;
  uint64_t seed = 0;
};
// The recordings SET-SEED.trace(.gz) in a folder that have their facts beside them, by seed.
absl::StatusOr<std::vector<RecordingFile>> list_recordings(const std::string& folder,
                                                           const std::string& set);

}  // namespace memdecay::eval
