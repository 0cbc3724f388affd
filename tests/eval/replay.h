// Every run of a plan over every recording of a set, one line a fact and a budget:
//
//   {"set","seed","mode":"once","policy","variant","channel","sampling","queries","prefill",
//    "budget","fact","region","planting","used","kept":0|1,"pages","resident"}
//
// mode "once": everything is seen, then the budget falls once. `resident` pages of `pages` stay;
// `kept`: all pages of the fact are among them. The results grow at their end: what stands there
// already is not done again, and a replay that was interrupted goes on where it was.
// Thread: one. Not here: one session (session.h), what the results say (analyse.py).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace memdecay::eval {

struct ReplayRequest {
  std::string recordings;  // folder
  std::string set;
  std::string plan;
  std::string results;   // file
  std::string programs;  // folder of memdecayd
  uint32_t limit = 0;    // recordings at most; 0: all
  // Each budget in a session of its own instead of one after the other; they keep the same pages.
  enum class Budgets : uint8_t { kFalling, kApart } budgets = Budgets::kFalling;
};

absl::Status replay(const ReplayRequest& request);

}  // namespace memdecay::eval
