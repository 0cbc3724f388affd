// Computes a scenario once with all its pages and tells what attention was paid to which.
//
// Why: all policies are judged on the same observations; they are exactly those that an engine
// would report step by step (the decoded part is computed in batches, with the same bits).
// Thread: one; the model's pool helps.
// Invariants: events are in the order in which an engine sends them: a step's seals before its
// observation; every prefill chunk and every decoded token is observed in every channel, single
// heads in every chunk and every kDetailEvery-th token.
// Not here: the file (trace_file.h), questions (prober.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "adapters/reference/decoder.h"
#include "adapters/reference/page_store.h"
#include "daemon/policy/trace/event.h"
#include "tests/eval/scenario.h"

namespace memdecay::eval {

inline constexpr size_t kChunkTokens = 128;  // of one prefill step
inline constexpr size_t kDetailEvery = 16;   // decoded tokens between observations of single heads

struct Channel {
  std::string name;
  reference::HeadChoice heads;
};

// "all" and "late" (the last third of the layers).
std::vector<Channel> usual_channels(const reference::ModelShape& shape);
// One for each head: "L12H3".
std::vector<Channel> head_channels(const reference::ModelShape& shape);

trace::Header trace_header();

class EpisodeRecorder {
 public:
  using Write = std::function<void(const trace::Event&)>;

  // `detail`: channels of single heads.
  EpisodeRecorder(reference::Decoder& decoder, const Scenario& scenario,
                  std::vector<Channel> channels, std::vector<Channel> detail, Write write);

  // `store` is empty and holds the episode's pages afterwards.
  absl::Status record(reference::PageStore& store);

 private:
  absl::Status compute(reference::PageStore& store, size_t begin, size_t end, size_t group);
  void tell_step(size_t begin, size_t end, std::span<const reference::PageMasses> masses);
  void seal(PageIndex page);
  void write(trace::What what);

  reference::Decoder& decoder_;
  const Scenario& scenario_;
  std::vector<Channel> channels_;  // the usual ones, then those of detail
  size_t usual_;
  Write write_;
  uint64_t step_ = 0;
  uint64_t key_ = 0;  // of the last sealed page
};

}  // namespace memdecay::eval
