// Which of a trace's channels (layers and heads; "c" of an observation) a calibration looks at, and
// their mean where it is several: the observation that a daemon would get from an engine that
// averages over those heads.
//
// A recorder writes one query's channels one behind the other; the mean is complete, and goes on,
// when something else follows. Channels that are missing for a query are left out of its mean, and
// a query of which none was recorded gives nothing.
// Thread: the owner's. Pure. Memory: one observation.
// Not here: which channels are worth it: who asks says.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "daemon/policy/trace/event.h"

namespace memdecay::calibration {

class Mix {
 public:
  using Take = absl::FunctionRef<absl::Status(const trace::Event&)>;

  // Observations of one of these channels pass as they are, of several as their mean, named by no
  // channel; no others pass.
  explicit Mix(std::vector<std::string> channels) : channels_(std::move(channels)) {}

  absl::Status take(const trace::Event& event, Take next);
  // What is not complete yet goes on: a trace has ended.
  absl::Status finish(Take next);

 private:
  bool wanted(const std::string& channel) const;
  bool continues(const trace::Event& event, const trace::Observed& seen) const;
  void add(const trace::Observed& seen);

  std::vector<std::string> channels_;
  std::optional<trace::Event> open_;  // sums over `parts_` channels
  double parts_ = 0;
  std::map<PageIndex, double> masses_;
};

}  // namespace memdecay::calibration
