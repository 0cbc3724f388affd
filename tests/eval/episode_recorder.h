// The steps of an episode as events of a trace.
//
// Why: a recording is replayed through every policy without computing it again.
// Thread: one; the scenario outlives it.
// Invariants: events are in the order in which an engine sends them: a step's seals before its
// observation; every step is observed in every usual channel, single heads in every chunk of the
// prompt and in a sample of the decoded tokens.
// Not here: computing (episode_pass.h), the file (trace_file.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "adapters/reference/model.h"
#include "daemon/policy/trace/event.h"
#include "tests/eval/episode_pass.h"
#include "tests/eval/scenario.h"

namespace memdecay::eval {

struct Channel {
  std::string name;
  reference::HeadChoice heads;
};
// "all" and "late" (the last third of the layers).
std::vector<Channel> usual_channels(const reference::ModelShape& shape);
// One for each of these heads, or for every head if there are none: "L12H3".
std::vector<Channel> head_channels(const reference::ModelShape& shape,
                                   reference::HeadChoice heads = {});

trace::Header trace_header();

class EpisodeRecorder {
 public:
  using Write = std::function<void(const trace::Event&)>;

  // Channels of single heads, told of every so many decoded tokens.
  struct Detail {
    std::vector<Channel> channels;
    uint64_t every = 16;
  };
  EpisodeRecorder(const Scenario& scenario, std::vector<Channel> channels, const Detail& detail,
                  Write write);

  // What the pass is asked for: the usual channels, then those of detail.
  std::vector<reference::HeadChoice> choices() const;
  void open();
  void take(const SeenStep& seen);
  void end();

 private:
  void seal(PageIndex page);
  void write(trace::What what);

  const Scenario& scenario_;
  std::vector<Channel> channels_;  // the usual ones, then those of detail
  size_t usual_;
  uint64_t detail_every_;
  Write write_;
  uint64_t step_ = 0;
  uint64_t key_ = 0;  // of the last sealed page
};

}  // namespace memdecay::eval
