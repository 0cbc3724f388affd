// The doctor: figures of a daemon turned into advice. A finding says in plain words what is seen,
// with its figures, which symptom of an agent goes with it, and what to change.
//
// A rule speaks only once there is enough to go by; each threshold stands beside its rule. The
// symptoms are those of deploy/TROUBLESHOOTING.md.
// Thread: pure functions. Not here: asking the daemon (commands.h).
#pragma once

#include <string>
#include <vector>

#include "memdecay/v1/admin.pb.h"

namespace memdecay::ctl {

struct Finding {
  std::string name;     // of the rule: "regret", "thrash", ...
  std::string symptom;  // as the troubleshooting page calls it
  std::string seen;     // with the figures
  std::string advice;
  std::string key;  // of the configuration
};

// The worst first.
std::vector<Finding> diagnose(const v1::GetFiguresResponse& figures);
// A paragraph a finding, or that all is well.
std::string render(const std::vector<Finding>& findings, const v1::GetFiguresResponse& figures);

}  // namespace memdecay::ctl
